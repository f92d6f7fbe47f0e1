"""How sure a figure is: confidence intervals over rows.

The row is the unit (the runs of a row are not independent): every interval here is one for the
mean of one value a row, as if the rows were drawn at random from all rows there could be. Knows
neither reports nor gates. None stands for "undefined", never for "certain".

- values in 0..1 (pass@k, pass^k, the mean of scores in 0..1): Agresti-Coull, N being the rows of 0
  and 1 that the values are worth
- the mean of other scores: t over the rows' means

Why not t for values in 0..1: most rows' pass@k is exactly 1.0. With 5 to 50 rows whose chances are
Beta(8, 2), the t interval of pass@3 of 8 runs covers 52 % to 82 %. benchmarks/coverage.py prints
how often these hold the truth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...verdicts import Interval
from . import student_t
from .estimators import finite, mean, population_std

if TYPE_CHECKING:
    from .estimators import Floats

HALF_SURPLUS_ROWS = 4.0
"""Times K: with so many rows away from the common end, half of the surplus over N is taken."""


def unit_interval(values: Floats, *, confidence: float = 0.95, k: int = 1) -> Interval | None:
    """The interval of the mean of one value a row, each in 0..1; None without rows.

    The values are worth `m (1 - m) / e^2` rows of 0 and 1, m being their mean and e its standard
    error (the design effect: Kish 1965; Korn and Graubard 1998, Survey Methodology 24:193), never
    fewer than N. The fewer rows lie away from the common end (0.0 or 1.0), the less is known of e,
    the more so the larger `k`, the K of a pass@k or pass^k: with D such rows, D / (D + 4 K) of the
    surplus over N is taken. Since e is estimated, t takes the place of z unless all are 0 or 1.
    """
    rows = len(values)
    if not rows:
        return None
    zeros, ones = int((values == 0.0).sum()), int((values == 1.0).sum())
    away = rows - max(zeros, ones)
    centre, error = mean(values), standard_error(values)
    if error is None or zeros + ones == rows:
        limits = agresti_coull(centre, rows, student_t.two_sided(confidence, math.inf))
        return Interval(*limits, "agresti-coull", confidence)
    worth = centre * (1.0 - centre) / error**2 if error else rows
    share = away / (away + HALF_SURPLUS_ROWS * k)
    effective = rows + max(0.0, worth - rows) * share
    limits = agresti_coull(centre, effective, student_t.two_sided(confidence, rows - 1))
    return Interval(*limits, "agresti-coull (effective rows)", confidence)


def t_interval(values: Floats, *, confidence: float = 0.95) -> Interval | None:
    """`m -+ t s / sqrt(N)` with N - 1 degrees of freedom and the sample deviation s.

    Student 1908, "The Probable Error of a Mean", Biometrika 6:1. None with fewer than two values
    or without spread.
    """
    error = standard_error(values)
    if not error:
        return None
    centre = mean(values)
    reach = student_t.two_sided(confidence, len(values) - 1) * error
    return Interval(finite(centre - reach), finite(centre + reach), "t", confidence)


def agresti_coull(share: float, rows: float, z: float) -> tuple[float, float]:
    """Return the limits of a share of so many rows, z deviations wide, within 0..1.

    `q -+ z sqrt(q (1 - q) / (N + z^2))` with `q = (p N + z^2 / 2) / (N + z^2)`: as if z^2 / 2 rows
    more had passed and as many failed. Agresti and Coull 1998, "Approximate is better than 'exact'
    for interval estimation of binomial proportions", The American Statistician 52:119.
    """
    more = z * z
    centre = (share * rows + more / 2.0) / (rows + more)
    reach = z * math.sqrt(centre * (1.0 - centre) / (rows + more))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def standard_error(values: Floats) -> float | None:
    """Sample standard deviation over the root of N; None with fewer than two values."""
    rows = len(values)
    if rows < 2:
        return None
    if values.min() == values.max():
        return 0.0
    return population_std(values) / math.sqrt(rows - 1)
