"""The results as workspaces of Osmosis have them: `--osmosis-metrics`."""

from __future__ import annotations

from ...options.table import FeatureEntry, OptionSet, report_option
from ...reports.formats import ReportFormat

_REPORT = ReportFormat(
    "metrics",
    "write figures here as workspaces of Osmosis have them (metrics.json), with index.jsonl, "
    "summary.jsonl, logs.txt and a folder of trajectories (ATIF) beside it",
    "features.workspace_results.report",
    "metrics",
    needs_conversations=True,
)

WORKSPACE_RESULTS = FeatureEntry(
    "workspace_results",
    [OptionSet("reports", (report_option(_REPORT),), after="runs-table")],
    report=_REPORT,
)
