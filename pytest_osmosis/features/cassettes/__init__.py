"""Recorded model calls: `--osmosis-record` and `--osmosis-replay`."""
