"""Early stopping: no further run once gates are certain: `--osmosis-stop-when-decided`."""
