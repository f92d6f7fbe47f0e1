"""The Markdown report: `--osmosis-markdown`."""
