"""Executing submitted runs: what of them is repositories, rooms on disk, and child processes."""
