"""Runs to a suite's result: pure counting, whatever order the runs finished in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from ..run_result import RunResult, SuiteInfo
from ..suite_results import Figure, FunctionResult, RowResult, SuiteResult, Usage
from ..verdicts import Interval
from .metrics import Metric, row_values, summary_metrics
from .planned_rows import score_table_of
from .score_table import ScoreTable
from .statistics.intervals import t_interval, unit_interval

CONFIDENCE = 0.95
"""Of the intervals that reports show, unless `--osmosis-confidence` says otherwise."""


def aggregate(
    info: SuiteInfo,
    runs: Iterable[RunResult],
    *,
    selected: int,
    confidence: float | None = None,
    repeated: Collection[RunResult] = (),
) -> SuiteResult:
    """Return everything that the reports say about one suite; no intervals without a confidence.

    `repeated` are runs that earlier sessions left and that are not among `runs`.
    """
    rows = _rows(runs)
    every = [run for row in rows for run in row.runs]
    suite = SuiteResult(
        info=info,
        rows=rows,
        functions=(),
        selected=selected,
        finished=len(every),
        short_rows=sum(len(row.runs) < info.n for row in rows),
        errors=dict(sorted(Counter(run.error_type for run in every if run.error_type).items())),
        finish_reasons=dict(
            sorted(Counter(run.finish_reason for run in every if run.finish_reason).items())
        ),
        used=Usage.of(every),
        retries=sum(run.retries for run in every),
        repeated=Usage.of([run for run in repeated if run.tokens != 0 or run.cost_usd]),
    )
    names = _names(info, every)
    table = score_table_of(suite, eval_fns=names)
    functions = (_function(name, suite, table, confidence) for name in names)
    return replace(suite, functions=tuple(functions))


def _rows(runs: Iterable[RunResult]) -> tuple[RowResult, ...]:
    ordered = sorted(runs, key=attrgetter("row_index", "run_index"))
    by_row = ((index, tuple(own)) for index, own in groupby(ordered, attrgetter("row_index")))
    return tuple(
        RowResult(index, next((run.row_id for run in own if run.row_id is not None), None), own)
        for index, own in by_row
    )


def _names(info: SuiteInfo, runs: Sequence[RunResult]) -> list[str]:
    """The suite's eval functions, then the scores that tests recorded under other names."""
    recorded = {name for run in runs for name in run.scores}
    return [*info.eval_fns, *sorted(recorded.difference(info.eval_fns))]


def _function(
    name: str, suite: SuiteResult, table: ScoreTable, confidence: float | None
) -> FunctionResult:
    scores = [run.scores.get(name) for run in suite.runs]
    scored = sum(score is not None for score in scores)
    figures = (
        _figure(metric, table, confidence)
        for metric in summary_metrics(suite.info.n, name)
        if table.has_threshold(name) or not metric.definition.counts_passes
    )
    return FunctionResult(
        name,
        {figure.metric: figure for figure in figures},
        scored,
        len(scores) - scored,
        is_recorded=name in table.thresholds,
        pass_threshold=table.thresholds.get(name),
    )


def _figure(metric: Metric, table: ScoreTable, confidence: float | None) -> Figure:
    definition = metric.definition
    if not table.has_score(metric.function(table), table.rows):
        return Figure(metric.label, metric.field, None)
    if definition.of_table is not None:
        found = definition.of_table(table, table.rows, metric.eval_fn)
        return Figure(metric.label, metric.field, found.value)
    values = row_values(metric, table, table.rows)
    value = definition.over_rows(values)
    interval = None if confidence is None else interval_of(metric, values, table, confidence)
    return Figure(metric.label, metric.field, value, interval)


def interval_of(
    metric: Metric, values: Sequence[float], table: ScoreTable, confidence: float
) -> Interval | None:
    """Return the interval of a metric that has one, from its rows' values; None if undefined.

    A mean cannot lie beyond min(0, lowest score) and max(1, highest): its interval ends there.
    """
    if metric.definition.interval is None:
        return None
    low, high = metric.scale(table)
    if (low, high) == (0.0, 1.0):
        return unit_interval(values, confidence=confidence, k=metric.k or 1)
    found = t_interval(values, confidence=confidence)
    return found and replace(found, low=max(low, found.low), high=min(high, found.high))
