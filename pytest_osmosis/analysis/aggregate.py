"""Runs to a suite's result: pure counting, whatever order the runs finished in."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from ..run_result import OWN_MODEL, RunResult, SuiteInfo
from ..suite_results import Figure, FunctionResult, RowResult, SuiteResult, Usage
from ..verdicts import Interval
from .metrics import Metric, summary_metrics, values_of, with_value
from .statistics.intervals import t_interval, unit_interval

if TYPE_CHECKING:
    from .score_table import RowScores, ScoreTable
    from .statistics.estimators import Floats, Places

CONFIDENCE = 0.95
"""Of the intervals that reports show, unless `--osmosis-confidence` says otherwise."""


def aggregate(
    info: SuiteInfo,
    runs: Iterable[RunResult],
    *,
    selected: int,
    confidence: float | None = None,
    repeated: Collection[RunResult] = (),
    figures: bool = True,
) -> SuiteResult:
    """Return everything that the reports say about one suite; no intervals without a confidence.

    `repeated` are runs that earlier sessions left and that are not among `runs`. Without `figures`
    there are none of eval functions, and numpy is not imported.
    """
    rows = _rows(runs)
    every = [run for row in rows for run in row.runs]
    suite = SuiteResult(
        info=info if _was_asked(every) else replace(info, model=OWN_MODEL, endpoint=""),
        rows=rows,
        functions=(),
        selected=selected,
        finished=len(every),
        short_rows=sum(len(row.runs) < info.n for row in rows),
        errors=_counted("error_type", every),
        finish_reasons=_counted("finish_reason", every),
        used=Usage.of(every),
        retries=sum(run.retries for run in every),
        repeated=Usage.of([run for run in repeated if run.tokens != 0 or run.cost_usd]),
    )
    if not figures:
        return suite
    from .score_table import score_table_of

    table = score_table_of(suite)
    functions = (_function(name, table, confidence) for name in table.eval_fns)
    return replace(suite, functions=tuple(functions))


def _was_asked(runs: Sequence[RunResult]) -> bool:
    """Return whether a call of the model was made; True as long as that is not known."""
    called = any(run.llm_calls or run.llm_ms or run.retries for run in runs)
    unclear = any(run.error_type not in (None, "agent", "eval_fn") for run in runs)
    return called or unclear or not any(run.success for run in runs)


def _counted(name: str, runs: Sequence[RunResult]) -> Mapping[str, int]:
    """Count the runs by a field, without those that lack it."""
    return dict(sorted(Counter(filter(None, map(attrgetter(name), runs))).items()))


def _rows(runs: Iterable[RunResult]) -> tuple[RowResult, ...]:
    by_row: defaultdict[int, list[RunResult]] = defaultdict(list)
    for run in runs:
        by_row[run.row_index].append(run)
    return tuple(_row(index, by_row[index]) for index in sorted(by_row))


_RUN_INDEX = attrgetter("run_index")


def _row(index: int, runs: list[RunResult]) -> RowResult:
    runs.sort(key=_RUN_INDEX)
    row_id = runs[0].row_id
    if row_id is None:  # of a run that was lost
        row_id = next((run.row_id for run in runs if run.row_id is not None), None)
    return RowResult(index, row_id, tuple(runs))


def _function(name: str, table: ScoreTable, confidence: float | None) -> FunctionResult:
    scored = int(table.counted(name).sum()) if table.has_score(name) else 0
    scores = table.row_scores(name)
    figures = (
        _figure(metric, table, scores, confidence)
        for metric in summary_metrics(table.n, name)
        if table.has_threshold(name) or not metric.definition.counts_passes
    )
    return FunctionResult(
        name,
        {figure.metric: figure for figure in figures},
        scored,
        int(table.finished.sum()) - scored,
        is_recorded=name in table.thresholds,
        pass_threshold={**table.own, **table.thresholds}.get(name),
    )


def _figure(
    metric: Metric, table: ScoreTable, scores: RowScores, confidence: float | None
) -> Figure:
    definition = metric.definition
    if not table.has_score(metric.function(table)):
        return Figure(metric.label, metric.field, None)
    if definition.of_table is not None:
        found = definition.of_table(table, metric.eval_fn)
        return Figure(metric.label, metric.field, found.value)
    scores = with_value(metric, scores)
    values = values_of(metric, scores)
    if not values.size:
        return Figure(metric.label, metric.field, None, rows=0)
    value = definition.over_rows(values)
    interval = None
    if confidence is not None:
        interval = interval_of(metric, values, table, confidence, clusters=scores.clusters)
    return Figure(metric.label, metric.field, value, interval, rows=values.size)


def interval_of(
    metric: Metric,
    values: Floats,
    table: ScoreTable,
    confidence: float,
    *,
    clusters: Places | None = None,
) -> Interval | None:
    """Return the interval of a metric that has one, from its rows' values; None if undefined.

    `clusters` has the cluster of each value, where rows belong together.
    A mean cannot lie beyond min(0, lowest score) and max(1, highest): its interval ends there.
    """
    if metric.definition.interval is None:
        return None
    if math.isinf(abs(values).max(initial=0.0)):  # of unknown scores that have no bound
        return None
    low, high = metric.scale(table)
    k = metric.k or 1 if (low, high) == (0.0, 1.0) else None
    if clusters is not None:
        from .statistics.clustered import cluster_interval, is_clustered  # brings numpy

        if is_clustered(clusters):
            found = cluster_interval(values, clusters, confidence=confidence, k=k)
            return found and replace(found, low=max(low, found.low), high=min(high, found.high))
    if k is not None:
        return unit_interval(values, confidence=confidence, k=k)
    found = t_interval(values, confidence=confidence)
    return found and replace(found, low=max(low, found.low), high=min(high, found.high))
