"""How sure a difference is: rows measured twice, one difference a row.

One method gives interval and p, so that neither contradicts the other. Knows neither reports nor
gates.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
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
    if not len(differences):
        return Paired(0.0, None, None, None)
    moved = differences / span
    padded = Padded.of(moved)
    t, found = student_t.two_sided(confidence, padded.freedom), mean(moved)
    low = max(-1.0, min(found, padded.centre - t * padded.error))
    high = min(1.0, max(found, padded.centre + t * padded.error))
    p = 2.0 * student_t.tail(abs(padded.centre) / padded.error, padded.freedom)
    interval = Interval(low * span, high * span, METHOD, confidence)
    return Paired(mean(differences), interval, min(1.0, p), METHOD)


@dataclass(frozen=True, slots=True)
class Padded:
    """One difference a row within -1..1, rows added: what the interval is made of."""

    rows: int
    """Without those that were added."""
    away: int
    """Rows that differ otherwise than most do."""
    centre: float
    """The mean of all."""
    error: float
    """Its standard error."""

    @classmethod
    def of(cls, moved: Floats) -> Padded:
        """Add the rows."""
        away, rows = _away(moved), len(moved)
        whole = rows + added_rows(away)
        centre = math.fsum(moved.tolist()) / whole
        square = (math.fsum((moved * moved).tolist()) + added_rows(away) / 2.0) / whole
        return cls(rows, away, centre, math.sqrt((square - centre * centre) / whole))

    @property
    def freedom(self) -> float:
        """Degrees of freedom."""
        return self.rows - 1 if self.rows > 1 else math.inf


def widest_paired(lows: Floats, highs: Floats, *, confidence: float) -> tuple[float, float]:
    """Return limits that no interval of `paired` passes while each difference is in its span.

    All spans lie within -1..1. The centre moves towards 0 and the error grows with the rows that
    are added, between `8 / (N + 4)` and 2: each is taken at its worst.
    """
    rows = len(lows)
    least, most = rows + added_rows(rows), rows + added_rows(0)
    sums = math.fsum(lows.tolist()), math.fsum(highs.tolist())
    low, high = (
        min(total / whole for total in sums[:1] for whole in (least, most)),
        max(total / whole for total in sums[1:] for whole in (least, most)),
    )
    nearest = max(low, -high, 0.0)
    squares = math.fsum((abs(lows).clip(abs(highs)) ** 2).tolist())
    square = max((squares + (whole - rows) / 2.0) / whole for whole in (least, most))
    error = math.sqrt(max(0.0, square - nearest * nearest) / least)
    reach = student_t.two_sided(confidence, rows - 1 if rows > 1 else math.inf) * error
    return max(-1.0, min(mean(lows), low - reach)), min(1.0, max(mean(highs), high + reach))


def added_rows(away: float) -> float:
    """Return how many rows are added where so many differ otherwise than most do."""
    return 2.0 * HALF_ADDED_ROWS / (away + HALF_ADDED_ROWS)


def _away(differences: Floats) -> int:
    """How many rows differ otherwise than most do; what differs by rounding alone is equal."""
    return len(differences) - max(Counter(differences.round(9).tolist()).values())
