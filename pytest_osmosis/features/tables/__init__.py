"""All runs as a table, `--osmosis-runs-table`; and `pytest_osmosis.read_report`."""
