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


def outcome_of(at_one: bool, at_other: bool) -> GateOutcome:
    """The verdict from whether the gate holds at each bound."""
    if at_one and at_other:
        return "passed"
    return "inconclusive" if at_one or at_other else "failed"
