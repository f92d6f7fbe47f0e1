"""Figures by the values of a column of the dataset: `--osmosis-by`."""
