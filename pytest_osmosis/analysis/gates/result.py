"""Verdicts: what one gate decided, in a value, a sentence and an exit status.

Knows how bounds become an outcome; not where they come from (`evaluate`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ...verdicts import GateOutcome

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


def exit_status(outcomes: Iterable[GateOutcome]) -> int:
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


def outcome_between(compare: str, threshold: float, low: float, high: float) -> GateOutcome:
    """The verdict on a figure that is somewhere from low to high.

    Passed where the gate holds for every value there, failed where it holds for none.
    """
    at_low, at_high = holds(compare, low, threshold), holds(compare, high, threshold)
    if at_low and at_high:
        return "passed"
    may_equal = compare == "==" and low < threshold < high
    return "inconclusive" if at_low or at_high or may_equal else "failed"
