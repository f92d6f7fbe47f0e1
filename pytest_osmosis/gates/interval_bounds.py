"""How far the limits of an interval can go while each row's value is only known to lie in a span.

The intervals are those of `intervals.mean_interval` and `intervals.pass_interval`; whichever
method they will take, its limits lie within what is given here. Knows no runs and no gates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis.statistics import student_t
from ..analysis.statistics.estimators import mean
from ..analysis.statistics.intervals import WIDEST_PIVOT, wilson_at
from ..verdicts import Interval


@dataclass(frozen=True, slots=True)
class Box:
    """A span for each row's value, within 0..1."""

    lows: Sequence[float]
    """Lowest, row by row."""
    highs: Sequence[float]
    """Highest, row by row."""

    @property
    def lowest_mean(self) -> float:
        """The mean with every row at its lowest."""
        return mean([min(pair) for pair in zip(self.lows, self.highs, strict=True)])

    @property
    def highest_mean(self) -> float:
        """The mean with every row at its highest."""
        return mean([max(pair) for pair in zip(self.lows, self.highs, strict=True)])

    @property
    def has_spread(self) -> bool:
        """Whether the rows cannot all end equal."""
        return max(self.lows) > min(self.highs) + 1e-9

    def largest_error(self) -> float:
        """No standard error of the rows' mean can be above this.

        The sum of squares around any point is at least that around the mean; around the middle
        mean, each row's square is largest at one of its ends.
        """
        rows, middle = len(self.lows), 0.5 * (self.lowest_mean + self.highest_mean)
        squares = math.fsum(
            max((low - middle) ** 2, (high - middle) ** 2)
            for low, high in zip(self.lows, self.highs, strict=True)
        )
        return math.sqrt(squares / (rows - 1) / rows)


def widest_limits(box: Box, *, confidence: float, may_be_undefined: bool) -> Interval:
    """Limits that no interval of values within the box passes.

    `may_be_undefined`: an interval of rows without spread is 0..1, as a gate takes it.
    """
    rows = len(box.lows)
    if rows < 2 or (may_be_undefined and not box.has_spread):
        return Interval(0.0, 1.0, "none", confidence)
    t = student_t.two_sided(confidence, rows - 1)
    reach = WIDEST_PIVOT * t * box.largest_error()
    low, high = box.lowest_mean, box.highest_mean
    return Interval(
        max(0.0, min(low - reach, wilson_at(low, rows, t)[0])),
        min(1.0, max(high + reach, wilson_at(high, rows, t)[1])),
        "widest",
        confidence,
    )
