"""The part of a comparison in the JSON report: its pydantic model, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ...reports.highlights import row_name
from ...reports.json_figures import Figure, ReportModel, Whole, interval_of
from ...run_result import ErrorType
from ...suite_results import SuiteResult
from ...verdicts import Paired
from .earlier_runs import earlier_run
from .results import Change, Comparison, Count, Difference
from .section import BaselineReport


class SavedDifference(ReportModel):
    """A metric here and in the baseline, over the rows that both have."""

    metric: str
    current: float
    baseline: float
    difference: Figure
    p: float | None
    p_method: str | None


class SavedRow(ReportModel):
    """A row whose mean score differs."""

    name: str
    row_index: Whole | None = None
    baseline_row_index: Whole | None = None
    verdict: Literal["regressed", "improved", "changed"] = Field(
        description="changed: chance may explain it"
    )
    p: float | None = Field(description="of the exact permutation test; null: too few runs")
    mean: float
    baseline_mean: float
    passes: Whole
    runs: Whole
    scored: Whole | None = None
    baseline_passes: Whole
    baseline_runs: Whole
    baseline_scored: Whole | None = None
    answer: str | None
    baseline_answer: str | None


class SavedFunction(ReportModel):
    """One eval function on both sides."""

    rows: Whole = Field(description="rows compared")
    differences: list[SavedDifference]
    changes: list[SavedRow] = Field(default_factory=list, description="by p, then by size")
    tested: Whole = Field(default=0, description="rows whose runs could show a change")
    short: Whole = Field(default=0, description="rows with too few runs on a side for that")
    clusters: list[SavedRow] | None = Field(
        default=None,
        description="clusters of rows that differ, each with the indices of the row that moved "
        "most; then `tested` counts clusters, and rows have the verdicts of theirs; null: rows are "
        "independent",
    )
    rule: str = Field(default="", description="by what a row is called regressed or improved")


class SavedRun(ReportModel):
    """A run of the baseline, of a row that differs."""

    run_index: Whole
    success: bool
    passed: bool = Field(description="by the thresholds of this session")
    scores: dict[str, float]
    reasons: dict[str, str]
    error: str | None
    error_type: ErrorType | None
    error_kind: str | None
    answer: str | None
    tools: list[str] = Field(
        description="the tools that it called, as far as its conversation is there"
    )


class SavedRuns(ReportModel):
    """The runs of the baseline of one row."""

    row_index: Whole = Field(description="in the data of this session")
    runs: list[SavedRun]


class Model(ReportModel):
    """What the session was compared with, and what changed."""

    source: str
    notes: list[str] = Field(description="what else differs, and what was not compared")
    eval_fns: dict[str, SavedFunction]
    runs: list[SavedRuns] = Field(
        default_factory=list, description="the baseline's, of the rows that differ"
    )


def read(saved: Model, suite: SuiteResult) -> BaselineReport:
    """Return the comparison that a report holds."""
    index_of = {row_name(row): row.row_index for row in suite.rows}
    comparisons = tuple(_comparison(name, each, index_of) for name, each in saved.eval_fns.items())
    runs = {
        each.row_index: tuple(
            earlier_run(run, run.tools, suite=suite.info.name, row_index=each.row_index)
            for run in each.runs
        )
        for each in saved.runs
    }
    return BaselineReport(comparisons, tuple(saved.notes), saved.source, runs)


def _comparison(name: str, saved: SavedFunction, index_of: Mapping[str, int]) -> Comparison:
    changes = tuple(_change(each, index_of) for each in saved.changes)
    differences = tuple(map(_difference, saved.differences))
    clusters = None
    if saved.clusters is not None:
        clusters = tuple(_change(each, index_of) for each in saved.clusters)
    return Comparison(
        name, saved.rows, differences, changes, saved.tested, saved.short, clusters=clusters
    )


def _difference(saved: SavedDifference) -> Difference:
    paired = Paired(saved.difference.value, interval_of(saved.difference), saved.p, saved.p_method)
    return Difference(saved.metric, saved.current, saved.baseline, paired)


_OF_A_CHANGE = "name", "mean", "baseline_mean", "p", "verdict", "answer", "baseline_answer"
"""Fields of a row that changed which are saved as they are."""


def _change(saved: SavedRow, index_of: Mapping[str, int]) -> Change:
    index, index_there = saved.row_index, saved.baseline_row_index
    if index is None or index_there is None:  # an earlier version had its name alone
        index = index_there = index_of.get(saved.name, 0)
    own = {name: getattr(saved, name) for name in _OF_A_CHANGE}
    return Change(
        **own,
        row_index=index,
        baseline_row_index=index_there,
        current=_count(saved.passes, saved.runs, saved.scored),
        baseline=_count(saved.baseline_passes, saved.baseline_runs, saved.baseline_scored),
    )


def _count(passes: int, runs: int, scored: int | None) -> Count:
    known = runs if scored is None else scored
    return Count(passes, known, runs - known)
