"""All runs as a table, `--osmosis-runs-table`; and `pytest_osmosis.read_report`."""

from __future__ import annotations

from ...options.table import FeatureEntry, OptionSet, report_option
from ...reports.formats import ReportFormat

_REPORT = ReportFormat(
    "runs-table",
    "write all runs here as a table: .csv or .parquet",
    "features.tables.runs_table",
    "table of runs",
    suffixes=(".csv", ".parquet"),
    needs_rows=True,
)

TABLES = FeatureEntry(
    "tables",
    [OptionSet("reports", (report_option(_REPORT),), after="html")],
    report=_REPORT,
)
