"""Verdicts: how the bounds and intervals of a figure become the result of its gate, and statuses.

Not where they come from (`evaluate`). Pure.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...verdicts import EvalVerdict, GateOutcome, GateResult, Interval, overall
from ..metrics import Bounds
from .parser import Gate

INCONCLUSIVE = 8
"""The exit status where no gate failed."""

EQUAL_WITHIN = 1e-9
"""Figures closer than this (relative to the threshold from 1 up) are equal: 0.1 + 0.2 is 0.3."""

_FARTHEST = 1_000.0
"""With the interval so many times as far as the threshold, no number of rows is worth naming."""

_COMPARE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}


def exit_status(outcomes: Iterable[EvalVerdict]) -> int:
    """1 if any failed or is unfinished, else 8 if any is inconclusive, else 0."""
    statuses = {"passed": 0, "unfinished": 1, "failed": 1, "inconclusive": INCONCLUSIVE}
    return statuses[overall([*outcomes], all_passed=True)]


def holds(compare: str, value: float, threshold: float) -> bool:
    """Whether `value OP threshold`, values within `EQUAL_WITHIN` being equal."""
    if abs(value - threshold) <= EQUAL_WITHIN * max(1.0, abs(threshold)):
        value = threshold
    return bool(_COMPARE[compare](value, threshold))


def outcome_between(compare: str, threshold: float, low: float, high: float) -> GateOutcome:
    """The verdict on a figure that is somewhere from low to high.

    Passed where the gate holds for every value there, failed where it holds for none.
    """
    at_low, at_high = holds(compare, low, threshold), holds(compare, high, threshold)
    if at_low and at_high:
        return "passed"
    may_equal = compare == "==" and low < threshold < high
    return "inconclusive" if at_low or at_high or may_equal else "failed"


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
