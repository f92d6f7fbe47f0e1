"""Figures by columns in the JSON report: the pydantic model, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence

from ...reports.json_figures import EvalFnSummary, ReportModel, Whole
from ...suite_results import SuiteResult
from .results import Breakdowns, breakdown_of


class ByValue(ReportModel):
    """The rows that have one value in a column."""

    value: str
    row_indices: list[Whole]
    total_runs: Whole
    eval_fns: dict[str, EvalFnSummary]


class ByColumn(ReportModel):
    """The figures for each value of a column of the dataset (`--osmosis-by`)."""

    column: str
    values: list[ByValue]


Model = ByColumn


def read(saved: Sequence[ByColumn], suite: SuiteResult) -> Breakdowns:
    """Return the figures that a report holds, computed again."""
    return Breakdowns(
        tuple(
            breakdown_of(
                suite,
                column.column,
                {each.value: each.row_indices for each in column.values},
                confidence=suite.confidence,
            )
            for column in saved
        )
    )
