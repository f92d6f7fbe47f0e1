"""Variables from a file, for one session: `--osmosis-env-file`."""
