"""The HTML report: `--osmosis-html`; the pages of `osmosis eval view` too."""

from __future__ import annotations

from ...options.table import FeatureEntry, OptionSet, report_option
from ...reports.formats import ReportFormat

_REPORT = ReportFormat(
    "html",
    "write the HTML report here: one page, with every conversation",
    "features.html.report",
    "HTML report",
    needs_rows=True,
    needs_conversations=True,
    is_page=True,
)

HTML = FeatureEntry(
    "html",
    [OptionSet("reports", (report_option(_REPORT),), after="markdown")],
    report=_REPORT,
)
