"""How sure a figure is: confidence intervals over rows.

The row is the unit (the runs of a row are not independent): every interval here is one for the
mean of one value a row, as if the rows were drawn at random from all rows there could be. Knows
neither reports nor gates. None stands for "undefined", never for "certain".

- mean, where every row's mean is 0 or 1 (n = 1, pass or fail): Wilson
- mean, where every score is 0 or 1: as pass@1, which it is (`metrics.interval_kind`)
- mean, otherwise: t over the rows' means
- pass@k and pass^k, where every row's value is 0 or 1 (n = 1, k = n): Wilson
- pass@k and pass^k, at least 200 rows and little skew: t (the normal approximation)
- pass@k and pass^k, at least 12 rows not at the common end: studentised cluster bootstrap
- pass@k and pass^k, otherwise: Wilson with an effective number of rows

Why not the plain percentile bootstrap: at a nominal 95 % it covers 65 % to 92 % with 10 to 50 rows
of beta-binomial runs, because most rows' pass@k is exactly 1.0. benchmarks/coverage.py prints the
table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from ...verdicts import Interval
from . import student_t
from .bootstrap import RESAMPLES, studentised
from .estimators import finite, mean, population_std

MANY_ROWS = 200
"""Rows from which the normal approximation is considered."""

INFORMATIVE_ROWS = 12
"""Rows away from the common end (all 0.0 or all 1.0) from which resampling is used."""

WIDEST_PIVOT = 2.0
"""So many t intervals from the figure is as far as a limit lies: resampled tails can be wild."""


def mean_interval(row_means: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """The interval of a mean score, from each row's mean.

    None with fewer than two rows or when all are equal, unless each is 0 or 1: their mean is then
    a share, and its interval Wilson's.
    """
    if _all_binary(row_means):
        return wilson(sum(map(int, row_means)), len(row_means), confidence=confidence)
    return t_interval(row_means, confidence=confidence)


def pass_interval(
    row_values: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The interval of a pass@k or pass^k, from each row's estimate (in 0..1).

    The module's docstring says which method is taken when. None without rows.
    """
    if not row_values:
        return None
    if _all_binary(row_values):
        return wilson(sum(map(int, row_values)), len(row_values), confidence=confidence)
    if is_nearly_normal(row_values):
        interval = t_interval(row_values, confidence=confidence)
        return _within(interval, 0.0, 1.0, method="normal") if interval else None
    if _informative(row_values) < INFORMATIVE_ROWS:
        return wilson_effective(row_values, confidence=confidence)
    interval = bootstrap_interval(row_values, confidence=confidence, resamples=resamples, seed=seed)
    return _within(interval, 0.0, 1.0) if interval else None


def t_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
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


def wilson(passes: float, rows: float, *, confidence: float = 0.95) -> Interval | None:
    """The score interval of a share: `(p + z^2/2N -+ z sqrt(p(1-p)/N + z^2/4N^2)) / (1 + z^2/N)`.

    Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference", JASA
    22:209. None without rows.
    """
    if not rows:
        return None
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    return Interval(*wilson_at(passes / rows, rows, z), "wilson", confidence)


def wilson_effective(values: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """Wilson's interval for the mean of values in 0..1, N replaced by the rows it is worth.

    A mean m with standard error e is worth `m (1 - m) / e^2` rows of 0 and 1 (the design effect:
    Kish 1965; Korn and Graubard 1998, Survey Methodology 24:193), never fewer than N; t takes the
    place of z, since e is estimated. Where only D rows differ from the common end, e is hardly
    known: the surplus over N is taken by D / (D + 4) only.
    """
    rows = len(values)
    if rows < 2:
        return wilson(sum(values), rows, confidence=confidence)
    centre, error = mean(values), standard_error(values)
    worth = centre * (1.0 - centre) / error**2 if error else rows
    differing = _informative(values)
    effective = rows + max(0.0, worth - rows) * differing / (differing + 4.0)
    t = student_t.two_sided(confidence, rows - 1)
    return Interval(*wilson_at(centre, effective, t), "wilson (effective rows)", confidence)


def bootstrap_interval(
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """`m - t*(1-a/2) e .. m - t*(a/2) e`, t* from the studentised bootstrap over rows.

    Efron and Tibshirani 1993, section 12.5. Seeded: the same values give the same limits. The
    quantiles of t* are held within `WIDEST_PIVOT` times Student's, and m within the limits. None
    without spread.
    """
    pivot = studentised(values, resamples=resamples, seed=seed)
    if pivot is None:
        return None
    widest = WIDEST_PIVOT * student_t.two_sided(confidence, len(values) - 1)
    lower = max(min(pivot.at((1.0 - confidence) / 2.0), 0.0), -widest)
    upper = min(max(pivot.at((1.0 + confidence) / 2.0), 0.0), widest)
    low, high = pivot.mean - upper * pivot.error, pivot.mean - lower * pivot.error
    return Interval(finite(low), finite(high), "bootstrap-t", confidence)


def is_nearly_normal(values: Sequence[float]) -> bool:
    """Whether the mean of so many values may be taken as normal: N >= 200 and N > 25 g^2.

    g is the skewness of the values; the rule is Cochran's (1977, "Sampling Techniques", 3rd
    edition, equation 2.30).
    """
    rows = len(values)
    if rows < MANY_ROWS:
        return False
    centre = mean(values)
    second = math.fsum((value - centre) ** 2 for value in values) / rows
    third = math.fsum((value - centre) ** 3 for value in values) / rows
    return second > 0.0 and rows * second**3 > 25.0 * third**2


def standard_error(values: Sequence[float]) -> float | None:
    """Sample standard deviation over the root of N; None with fewer than two values."""
    rows = len(values)
    if rows < 2:
        return None
    if min(values) == max(values):
        return 0.0
    return population_std(values) / math.sqrt(rows - 1)


def wilson_at(share: float, rows: float, z: float) -> tuple[float, float]:
    """Return Wilson's lower and upper limit for a share of so many rows, z deviations wide."""
    shrink = 1.0 + z * z / rows
    centre = (share + z * z / (2.0 * rows)) / shrink
    reach = z / shrink * math.sqrt(share * (1.0 - share) / rows + z * z / (4.0 * rows * rows))
    low = 0.0 if share == 0.0 else max(0.0, centre - reach)
    high = 1.0 if share == 1.0 else min(1.0, centre + reach)
    return low, high


def _informative(values: Sequence[float]) -> int:
    """How many rows differ from the end, 0 or 1, at which more of them lie."""
    return len(values) - max(values.count(0.0), values.count(1.0))


def _all_binary(values: Sequence[float]) -> bool:
    return all(value in (0.0, 1.0) for value in values)


def _within(interval: Interval, low: float, high: float, *, method: str | None = None) -> Interval:
    return Interval(
        max(low, interval.low),
        min(high, interval.high),
        method or interval.method,
        interval.confidence,
    )
