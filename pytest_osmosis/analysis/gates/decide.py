"""Bounds and intervals of a figure to the result of its gate; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ...verdicts import GateResult, Interval
from ..metrics import Bounds
from .parser import Gate
from .result import EQUAL_WITHIN, outcome_between

_FARTHEST = 1_000.0
"""With the interval so many times as far as the threshold, no number of rows is worth naming."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """What a confidence adds: the figure's interval, and the limits that widen the bounds."""

    figure: Interval | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


def lower_bound(interval: Interval | None, undefined: float) -> float:
    """Return the lower limit; the end of the scale where the interval is undefined."""
    return undefined if interval is None else max(interval.low, undefined)


def upper_bound(interval: Interval | None, undefined: float) -> float:
    """Return the upper limit; the end of the scale where the interval is undefined."""
    return undefined if interval is None else min(interval.high, undefined)


def decide(gate: Gate, found: Bounds, intervals: Intervals, *, rows: int) -> GateResult:
    """Return what becomes of a gate that is held at these bounds and intervals."""
    worst = found.worst if intervals.low is None else min(found.worst, intervals.low)
    best = found.best if intervals.high is None else max(found.best, intervals.high)
    low, high = min(worst, best), max(worst, best)
    outcome = outcome_between(gate.operator, gate.threshold, low, high)
    more = None
    if outcome == "inconclusive" and intervals.figure is not None and found.value is not None:
        more = _more_rows(gate, found.value, intervals.figure, rows)
    k = gate.metric.k or 1
    is_short = found.value is None and k > 1
    return replace(
        unmeasured(gate, f"no row has {k} runs with a score" if is_short else None),
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
