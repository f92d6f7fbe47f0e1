"""The Markdown report: `--osmosis-markdown`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...options.table import FeatureEntry, OptionSet, report_option
from ...reports.formats import ReportFormat

if TYPE_CHECKING:
    from ...options.reader import OptionReader

_REPORT = ReportFormat(
    "markdown",
    "write the Markdown report here (in GitHub Actions it is the step's summary as well)",
    "features.markdown.report",
    "Markdown report",
)


def _read(given: OptionReader) -> bool | None:
    return os.environ.get("GITHUB_ACTIONS") == "true" or None


MARKDOWN = FeatureEntry(
    "markdown",
    [OptionSet("reports", (report_option(_REPORT),), after="output")],
    read=_read,
    feature="GitHubFeature",
    report=_REPORT,
)
