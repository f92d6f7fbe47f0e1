"""Summaries of numbers over the runs of a table, at their worst and best, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.metrics import Bounds
from ...analysis.statistics.clustered import cluster_interval, is_clustered
from ...analysis.statistics.estimators import mean
from ...analysis.statistics.intervals import t_interval
from ...analysis.statistics.order import nearest_rank, percentile_limits
from ...run_result import RunResult, is_counted

if TYPE_CHECKING:
    from ...analysis.score_table import Case, ScoreTable
    from ...analysis.statistics.estimators import Floats
    from ...verdicts import Interval

Measure = Callable[[RunResult], "float | None"]
_FILL: dict[Case, float] = {"value": math.nan, "worst": 0.0, "best": math.inf}
"""What an unknown number is taken for; none is negative."""


def of_number(table: ScoreTable, measure: Measure, summary: str | float) -> Bounds:
    """Return a summary ("mean", "max", or a percentile as a share), and its bounds."""
    found = numbers_of(table, measure)
    value, low, high = (_summed(_filled(found, fill), summary) for fill in _FILL.values())
    assert low is not None and high is not None
    return Bounds(value, low, high, int(np.isnan(found).sum()))


def limits_of_number(
    table: ScoreTable, measure: Measure, summary: str | float, case: Case, confidence: float
) -> Interval | None:
    """Return its interval, unknown numbers taken for what the case says; None: undefined."""
    values = _filled(numbers_of(table, measure), _FILL[case])
    rows = ~np.isnan(values).all(axis=1)
    clusters = None if table.clusters is None else table.clusters[rows]
    if isinstance(summary, float):
        return percentile_limits(values[rows], summary, confidence=confidence, clusters=clusters)
    means = np.nanmean(values[rows], axis=1)
    if np.isinf(means).any():
        return None
    if clusters is not None and is_clustered(clusters):
        return cluster_interval(means, clusters, confidence=confidence)
    return t_interval(means, confidence=confidence)


def of_scores(table: ScoreTable, eval_fn: str, p: float) -> Bounds:
    """Return a percentile of the scores of all runs that count, and its bounds."""
    value, low, high = (
        _summed(_scores(table, eval_fn, case), p) for case in ("value", "worst", "best")
    )
    if low is None or high is None:  # no run has recorded it
        return Bounds(None, -math.inf, math.inf, 0)
    return Bounds(value if table.has_score(eval_fn) else None, low, high, table.unknown(eval_fn))


def limits_of_scores(
    table: ScoreTable, eval_fn: str, p: float, case: Case, confidence: float
) -> Interval | None:
    """Return its interval; where a limit is not to be had, the end of the scale."""
    values = _scores(table, eval_fn, case)
    rows = ~np.isnan(values).all(axis=1)
    clusters = None if table.clusters is None else table.clusters[rows]
    found = percentile_limits(values[rows], p, confidence=confidence, clusters=clusters)
    low, high = table.score_range(eval_fn)
    return found and replace(found, low=max(low, found.low), high=min(high, found.high))


def numbers_of(table: ScoreTable, measure: Measure) -> Floats:
    """Return the number of each run, NaN where it is not known."""
    found = np.full(table.finished.shape, math.nan)
    for row, run in np.argwhere(table.finished):
        result: RunResult = table.runs[row, run]
        if is_counted(result.error_type, result.error_kind):
            number = measure(result)
            found[row, run] = math.nan if number is None else number
    return found


def _filled(numbers: Floats, fill: float) -> Floats:
    return np.where(np.isnan(numbers), fill, numbers)


def _scores(table: ScoreTable, eval_fn: str, case: Case) -> Floats:
    scores = table.row_scores(eval_fn, case)
    return np.where(scores.counted, scores.scores, math.nan)


def _summed(values: Floats, summary: str | float) -> float | None:
    known = ~np.isnan(values)
    if not known.any():
        return None
    if summary == "max":
        return float(values[known].max())
    if summary == "mean":
        rows = values[known.any(axis=1)]
        return math.inf if np.isinf(rows).any() else mean(np.nanmean(rows, axis=1))
    assert isinstance(summary, float)
    return nearest_rank(np.sort(values[known]), summary)
