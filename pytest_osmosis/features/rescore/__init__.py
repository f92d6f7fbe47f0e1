"""Recorded conversations, scored once more: `--osmosis-rescore`."""
