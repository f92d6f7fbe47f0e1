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

import numpy as np

from ...escaping import counted, shortened
from ...verdicts import GateResult, Interval
from ..aggregate import interval_of
from ..comparison import Matched, differences, paired_values, span_of
from ..metrics import CASES, EACH_ROW, Bounds, bounds, row_values
from ..row_matching import match_rows
from ..score_table import Case, ScoreTable
from ..statistics.estimators import mean
from ..statistics.paired import paired
from .parser import Gate, GateError, Slice, resolved
from .result import EQUAL_WITHIN, holds, outcome_between

ROWS_NAMED = 5
"""Rows that a gate on each row names."""


def evaluate(
    gate: Gate,
    table: ScoreTable,
    *,
    confidence: float | None = None,
    baseline: ScoreTable | None = None,
    rows: Sequence[int] | None = None,
) -> GateResult:
    """The verdict on one gate; `rows`, if given, are the places of those of its slice.

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
    if rows is None and gate.where is not None:
        rows = slice_rows(gate, gate.where, table)
    if rows is not None:
        table = table.take(rows)
    if not len(table.rows) and gate.where:
        return unmeasured(gate, f"no row here has {gate.where.column} = {gate.where.value}")
    if (problem := _lacks_threshold(gate, table)) is not None:
        return unmeasured(gate, problem)
    if gate.against_baseline and baseline is not None:
        return _against(gate, table, baseline, confidence)
    metric, found = gate.metric, bounds(gate.metric, table)
    if found is None:
        return unmeasured(gate, "there are no runs to measure")
    intervals = _Intervals()
    if confidence is not None and metric.definition.interval is not None:
        figure, worst, best = (
            interval_of(metric, row_values(metric, table, case), table, confidence)
            for case in CASES
        )
        low, high = metric.scale(table)
        intervals = _Intervals(figure, _low(worst, low), _high(best, high), confidence)
    verdict = _verdict(gate, found, intervals, rows=len(table.rows))
    return replace(verdict, detail=_rows_below(gate, table))


def _rows_below(gate: Gate, table: ScoreTable) -> str:
    """Name the rows that do not reach the threshold of a gate on each row, the lowest first."""
    if gate.metric.kind != EACH_ROW:
        return ""
    scores = table.row_scores(gate.metric.function(table))
    ended = np.flatnonzero(scores.runs)
    shares = scores.passes[ended] / scores.runs[ended]
    order = shares.argsort(kind="stable")
    rising = shares[order].tolist()
    below = sum(not holds(gate.operator, share, gate.threshold) for share in rising)
    if not below:
        return ""
    named = ", ".join(
        f"{shortened(table.rows.names[row])} {scores.passes[row]}/{scores.runs[row]}"
        for row in ended[order][: min(below, ROWS_NAMED)].tolist()
    )
    more = f" and {below - ROWS_NAMED} more" if below > ROWS_NAMED else ""
    return f"{below} of {counted(len(table.rows), 'row')} below: {named}{more}"


def _lacks_threshold(gate: Gate, table: ScoreTable) -> str | None:
    """Say so, where a gate counts the passes of a score that has no pass threshold."""
    if not gate.metric.definition.counts_passes:
        return None
    name = gate.metric.function(table)
    hint = "record_score(…, pass_threshold=…) gives it one"
    return None if table.has_threshold(name) else f"{name} has no pass threshold: {hint}"


def slice_rows(gate: Gate, where: Slice, table: ScoreTable) -> list[int]:
    """The places of the rows of a gate's slice.

    Raises:
        GateError: when the dataset has no such column.
    """
    try:
        return table.rows.places(table.rows.where(where.column, where.value))
    except KeyError:
        raise GateError(gate.text, f"the data have no column {where.column!r}") from None


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
    gate: Gate, table: ScoreTable, baseline: ScoreTable, confidence: float | None
) -> GateResult:
    """A gate on the paired difference; the baseline's unknown runs count against each bound."""
    name, metric = gate.metric.function(table), gate.metric
    if name not in baseline.scores:
        return unmeasured(gate, f"the baseline has no eval function {name}")
    both = Matched.of(table, baseline, match_rows(table.rows, baseline.rows))
    if not len(both):
        return unmeasured(gate, "the baseline has none of these rows")
    value, worst, best = (
        differences(*paired_values(metric, both, case, _OPPOSITE[case])) for case in CASES
    )
    if not (worst.size and best.size):
        return unmeasured(gate, f"no run here and there has recorded {name}")
    found = Bounds(
        mean(value) if value.size and both.has_score(name) else None,
        mean(worst),
        mean(best),
        both.current.unknown(name) + both.baseline.unknown(name),
    )
    intervals = _Intervals()
    if confidence is not None:
        span = span_of(metric, both)
        figure, low, high = (
            paired(side, confidence=confidence, span=span).interval for side in (value, worst, best)
        )
        intervals = _Intervals(figure, _low(low, -span), _high(high, span), confidence)
    return _verdict(gate, found, intervals, rows=len(both))


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
    if distance <= EQUAL_WITHIN or reach <= distance or reach / distance > _FARTHEST:
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
