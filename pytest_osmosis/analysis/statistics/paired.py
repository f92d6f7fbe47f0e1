"""How sure a difference is: rows measured twice, one difference a row.

One method gives interval and p, so that neither contradicts the other. Knows neither reports nor
gates.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from ...verdicts import Interval, Paired
from . import student_t
from .estimators import mean

if TYPE_CHECKING:
    from .estimators import Floats

METHOD = "agresti-min"

HALF_ADDED_ROWS = 4.0
"""With so many rows away from the commonest difference, one row is added instead of two."""


def paired(differences: Floats, *, confidence: float = 0.95, span: float = 1.0) -> Paired:
    """The mean of one difference a row, none of which can lie farther than `span` from 0.

    The interval is `c -+ t e`, c and e being mean and standard error after rows were added, as
    Agresti and Min add two (2005, "Simple improved confidence intervals for comparing matched
    proportions", Statistics in Medicine 24:729): half of them without a difference, a quarter each
    with the largest in either direction. The more rows, D, differ otherwise than most do, the more
    is known of e: `8 / (D + 4)` rows are added. t has N - 1 degrees of freedom, and p is two-sided,
    `2 P(T > |c| / e)`: at most 1 - confidence exactly where the interval leaves 0 out.
    """
    rows = len(differences)
    if not rows:
        return Paired(0.0, None, None, None)
    moved = differences / span
    added = 2.0 * HALF_ADDED_ROWS / (_away(moved) + HALF_ADDED_ROWS)
    centre = math.fsum(moved.tolist()) / (rows + added)
    square = (math.fsum((moved * moved).tolist()) + added / 2.0) / (rows + added)
    error = math.sqrt((square - centre * centre) / (rows + added))
    freedom = rows - 1 if rows > 1 else math.inf
    t, found = student_t.two_sided(confidence, freedom), mean(moved)
    low = max(-1.0, min(found, centre - t * error))
    high = min(1.0, max(found, centre + t * error))
    p = 2.0 * student_t.tail(abs(centre) / error, freedom)
    interval = Interval(low * span, high * span, METHOD, confidence)
    return Paired(mean(differences), interval, min(1.0, p), METHOD)


def _away(differences: Floats) -> int:
    """How many rows differ otherwise than most do; what differs by rounding alone is equal."""
    return len(differences) - max(Counter(differences.round(9).tolist()).values())
