"""Shards as tasks of a Ray cluster. Needs the extra `ray`; only `fleet` and `task` import it."""
