"""Verdicts: what one gate decided, in a value, a sentence and an exit status.

Knows how bounds become an outcome; not where they come from (`gates`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..results import Interval
from .parser import Gate

Outcome = Literal["passed", "failed", "inconclusive"]

PASSED, FAILED, INCONCLUSIVE = 0, 1, 8
"""Exit statuses."""

EQUAL_WITHIN = 1e-9
"""Figures closer than this (relative to the threshold from 1 up) are equal: 0.1 + 0.2 is 0.3."""

_COMPARE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of one gate."""

    gate: Gate
    """The gate, its eval function's name whole."""
    outcome: Outcome
    """passed, failed or inconclusive."""
    figure: float | None
    """The metric as reported, unknown runs as 0.0; None when nothing could be measured."""
    low: float | None
    """The lower of the two bounds that the gate was held at."""
    high: float | None
    """The higher one; infinite for a sum with unknown parts."""
    interval: Interval | None
    """The figure's interval; None without a confidence, or where undefined."""
    rows: int
    """Rows that were looked at."""
    unknown: int
    """Runs in those rows whose value is not known: the runs to repeat."""
    more_rows: int | None
    """About how many more rows would settle it; None when it is settled, or rows would not."""
    reason: str | None = None
    """Why nothing could be measured."""
    confidence: float | None = None
    """What the bounds were widened with."""
    row_indices: tuple[int, ...] | None = None
    """The rows of its slice, by their position in the data file; None: all rows."""

    def sentence(self) -> str:
        """Figure, bounds and what to do next, in one line."""
        if self.low is None or self.high is None:
            return self.reason or "nothing was measured"
        return "; ".join([self._found(), *self._next()])

    def _found(self) -> str:
        value = "no run has ended" if self.figure is None else f"{self.figure:.4g}"
        if self.low == self.high:
            return value
        found = [f"{value}, between {self.low:.4g} and {self.high:.4g}"]
        if self.confidence:
            found.append(f"with {self.confidence:.4g} confidence")
        if self.unknown:
            found.append(f"whatever {_count(self.unknown, 'unknown run')} would have given")
        return " ".join(found)

    def _next(self) -> list[str]:
        if self.outcome != "inconclusive":
            return []
        steps = []
        metric = self.gate.metric
        if self.unknown and metric.definition.eval_fn == "none":
            steps.append(f"{metric.kind} of {_count(self.unknown, 'run')} is not known")
        elif self.unknown:
            enough = "" if self.more_rows else " to settle it"
            steps.append(f"repeat {_count(self.unknown, 'run')}{enough}")
        if self.more_rows:
            steps.append(f"about {_count(self.more_rows, 'more row')} would settle it")
        return steps


def exit_status(outcomes: Iterable[Outcome]) -> int:
    """1 if any gate failed, else 8 if any is inconclusive, else 0."""
    seen = set(outcomes)
    if "failed" in seen:
        return FAILED
    return INCONCLUSIVE if "inconclusive" in seen else PASSED


def holds(compare: str, value: float, threshold: float) -> bool:
    """Whether `value OP threshold`, values within `EQUAL_WITHIN` being equal."""
    if abs(value - threshold) <= EQUAL_WITHIN * max(1.0, abs(threshold)):
        value = threshold
    return bool(_COMPARE[compare](value, threshold))


def outcome_of(at_one: bool, at_other: bool) -> Outcome:
    """The verdict from whether the gate holds at each bound."""
    if at_one and at_other:
        return "passed"
    return "inconclusive" if at_one or at_other else "failed"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
