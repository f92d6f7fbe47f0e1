"""Test functions with the marker `osmosis`: run on every row and run of a dataset."""
