"""Shards as tasks of a Ray cluster. Needs the extra `ray`, which `client` alone imports."""
