"""The quarantine in the JSON report: the pydantic model, and how it is read."""

from __future__ import annotations

from ...reports.json_figures import ReportModel
from ...suite_results import SuiteResult
from .results import Quarantine


class QuarantinedRows(ReportModel):
    """Rows that were run and are in no figure and no gate (`--osmosis-quarantine`)."""

    rows: list[str]
    passing: list[str]


Model = QuarantinedRows


def read(saved: QuarantinedRows, suite: SuiteResult) -> Quarantine:
    """Return what a report holds."""
    return Quarantine(tuple(saved.rows), tuple(saved.passing))
