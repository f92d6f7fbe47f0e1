"""Gates to results: does a score table pass a gate, fail it, or neither.

A gate is held at two bounds: every unknown run at its worst, every unknown run at its best. It
passes if it holds at both, fails if it holds at neither and is inconclusive otherwise, whatever its
operator. With a confidence, each bound is moved outwards to the limit of its interval. Pure: knows
neither reports nor pytest; `parser` says what a gate is, `..metrics` what a metric is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...escaping import counted, shortened
from ...verdicts import GateResult, Interval
from ..aggregate import interval_of
from ..comparison import at_thresholds, differences, paired_values, span_of
from ..metrics import EACH_ROW, Bounds, Metric, bounds, row_values, unknown_scores
from ..row_matching import match_rows
from ..score_table import Case, ScoreTable
from ..statistics.estimators import mean
from ..statistics.paired import paired
from .parser import Gate, GateError, resolved
from .result import EQUAL_WITHIN, holds, outcome_between

ROWS_NAMED = 5
"""Rows that a gate on each row names."""

Pairs = Sequence[tuple[int, int]]
"""Rows that match: (row here, row in the baseline)."""


def evaluate(
    gate: Gate,
    table: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
    rows: Sequence[int] | None = None,
) -> GateResult:
    """The verdict on one gate; `rows`, if given, are the positions of those of its slice.

    Raises:
        GateError: when the gate names no (or an unknown) eval function among several, a K above n,
            an unknown column, or needs a baseline that is not given.
    """
    gate = resolved(
        gate,
        eval_fns=table.eval_fns,
        n=table.n,
        baseline_n=baseline.n if baseline else None,
        has_baseline=baseline is not None,
    )
    if rows is None:
        rows = slice_rows(gate, table)
    if not rows and gate.where:
        return unmeasured(gate, f"no row here has {gate.where.column} = {gate.where.value}")
    if (problem := _lacks_threshold(gate, table)) is not None:
        return unmeasured(gate, problem)
    if gate.against_baseline and baseline is not None:
        return _against(gate, table, rows, baseline=baseline, confidence=confidence)
    found = bounds(gate.metric, table, rows)
    if found is None:
        return unmeasured(gate, "there are no runs to measure")
    intervals = _Intervals()
    metric = gate.metric
    if confidence is not None and metric.definition.interval is not None:
        figure, worst, best = (
            interval_of(metric, row_values(metric, table, rows, case), table, confidence)
            for case in _CASES
        )
        low, high = metric.scale(table)
        intervals = _Intervals(figure, _low(worst, low), _high(best, high), confidence)
    verdict = _verdict(gate, found, intervals, rows=len(rows))
    return replace(verdict, detail=_rows_below(gate, table, rows))


def _rows_below(gate: Gate, table: ScoreTable, rows: Sequence[int]) -> str:
    """Name the rows that do not reach the threshold of a gate on each row, the lowest first."""
    if gate.metric.kind != EACH_ROW:
        return ""
    scores = table.rows_of_scores(gate.metric.function(table), rows)
    ended = [(row, *each.passes_of("value")) for row, each in zip(rows, scores, strict=True)]
    low = sorted(
        (passed / runs, row, f"{shortened(table.row_names[row])} {passed}/{runs}")
        for row, runs, passed in ended
        if runs and not holds(gate.operator, passed / runs, gate.threshold)
    )
    if not low:
        return ""
    named = ", ".join(name for *_, name in low[:ROWS_NAMED])
    more = f" and {len(low) - ROWS_NAMED} more" if len(low) > ROWS_NAMED else ""
    return f"{len(low)} of {counted(len(rows), 'row')} below: {named}{more}"


def _lacks_threshold(gate: Gate, table: ScoreTable) -> str | None:
    """Say so, where a gate counts the passes of a score that has no pass threshold."""
    if not gate.metric.definition.counts_passes:
        return None
    name = gate.metric.function(table)
    hint = "record_score(…, pass_threshold=…) gives it one"
    return None if table.has_threshold(name) else f"{name} has no pass threshold: {hint}"


def slice_rows(gate: Gate, table: ScoreTable) -> Sequence[int]:
    """The rows that a gate looks at.

    Raises:
        GateError: when the dataset has no such column.
    """
    if gate.where is None:
        return table.rows
    try:
        return table.rows_where(gate.where.column, gate.where.value)
    except KeyError:
        raise GateError(gate.text, f"the data have no column {gate.where.column!r}") from None


_CASES: tuple[Case, Case, Case] = ("value", "worst", "best")
_OPPOSITE: dict[Case, Case] = {"value": "value", "worst": "best", "best": "worst"}

_FARTHEST = 1_000.0
"""With the interval so many times as far as the threshold, no number of rows is worth naming."""


@dataclass(frozen=True, slots=True)
class _Intervals:
    """What a confidence adds: the figure's interval, and the limits that widen the bounds."""

    figure: Interval | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


def _against(
    gate: Gate,
    table: ScoreTable,
    rows: Sequence[int],
    *,
    baseline: ScoreTable,
    confidence: float | None,
) -> GateResult:
    """A gate on the paired difference; the baseline's unknown runs count against each bound."""
    name, metric = gate.metric.function(table), gate.metric
    if name not in baseline.scores:
        return unmeasured(gate, f"the baseline has no eval function {name}")
    pairs = matching_rows(table, baseline, rows)
    if not pairs:
        return unmeasured(gate, "the baseline has none of these rows")
    there = at_thresholds(baseline, table)
    sides = {case: paired_differences(metric, table, there, pairs, case) for case in _CASES}
    if not (sides["worst"] and sides["best"]):
        return unmeasured(gate, f"no run here and there has recorded {name}")
    is_scored = all(
        side.has_score(name, rows)
        for side, rows in zip((table, there), zip(*pairs, strict=True), strict=True)
    )
    value = mean(sides["value"]) if sides["value"] and is_scored else None
    unknown = unknown_scores(metric, table, [here for here, _ in pairs])
    unknown += unknown_scores(metric, there, [other for _, other in pairs])
    found = Bounds(value, mean(sides["worst"]), mean(sides["best"]), unknown)
    intervals = _Intervals()
    if confidence is not None:
        span = span_of(metric, table, there)
        figure, worst, best = (
            paired(sides[case], confidence=confidence, span=span).interval for case in _CASES
        )
        intervals = _Intervals(figure, _low(worst, -span), _high(best, span), confidence)
    return _verdict(gate, found, intervals, rows=len(pairs))


def matching_rows(table: ScoreTable, baseline: ScoreTable, rows: Sequence[int]) -> Pairs:
    """Return the rows, of those given, that the baseline has too."""
    wanted = set(rows)
    return [pair for pair in match_rows(table, baseline).pairs if pair[0] in wanted]


def paired_differences(
    metric: Metric, table: ScoreTable, baseline: ScoreTable, pairs: Pairs, case: Case
) -> list[float]:
    """Return one difference a row; the baseline's unknown runs count against the case."""
    return differences(*paired_values(metric, table, baseline, pairs, case, _OPPOSITE[case]))


def _low(interval: Interval | None, undefined: float) -> float:
    return undefined if interval is None else max(interval.low, undefined)


def _high(interval: Interval | None, undefined: float) -> float:
    return undefined if interval is None else min(interval.high, undefined)


def _verdict(gate: Gate, found: Bounds, intervals: _Intervals, *, rows: int) -> GateResult:
    worst = found.worst if intervals.low is None else min(found.worst, intervals.low)
    best = found.best if intervals.high is None else max(found.best, intervals.high)
    low, high = min(worst, best), max(worst, best)
    outcome = outcome_between(gate.operator, gate.threshold, low, high)
    more = None
    if outcome == "inconclusive" and intervals.figure is not None and found.value is not None:
        more = _more_rows(gate, found.value, intervals.figure, rows)
    return replace(
        unmeasured(gate, None),
        outcome=outcome,
        figure=found.value,
        low=low,
        high=high,
        interval=intervals.figure,
        rows=rows,
        unknown=found.unknown,
        more_rows=more,
        confidence=intervals.confidence,
    )


def _more_rows(gate: Gate, figure: float, interval: Interval, rows: int) -> int | None:
    """Rows until the interval, narrowing as 1 / sqrt(rows), no longer reaches the threshold.

    As if the figure stayed what it is. None when it is (all but) at the threshold, or when the
    interval does not reach it already and only unknown runs keep the gate open.
    """
    distance = abs(figure - gate.threshold)
    reach = figure - interval.low if gate.threshold <= figure else interval.high - figure
    if distance <= EQUAL_WITHIN or reach <= distance or reach > _FARTHEST * distance:
        return None
    return max(1, math.ceil(rows * (reach / distance) ** 2) - rows)


def unmeasured(gate: Gate, reason: str | None) -> GateResult:
    """Return the result of a gate that there is nothing to hold at, and why."""
    return GateResult(
        gate=gate.text,
        metric=gate.label,
        eval_fn=gate.eval_fn,
        operator=gate.operator,
        threshold=gate.threshold,
        outcome="inconclusive",
        figure=None,
        low=None,
        high=None,
        interval=None,
        rows=0,
        unknown=0,
        more_rows=None,
        is_measure=gate.metric.definition.eval_fn == "none",
        reason=reason,
    )
