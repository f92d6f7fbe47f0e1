"""What a design of rows and runs can show: the smallest fall, the interval, the cheapest design.

The gates' own formulas, by a few numbers in place of scores. Knows neither reports nor gates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from . import student_t
from .intervals import HALF_SURPLUS_ROWS, agresti_coull

HALF_ADDED_ROWS = 4.0
"""With so many rows away from the commonest difference, one row is added instead of two."""

POWER = 0.8
"""The chance with which the difference is shown."""

LEAST_AWAY = 10
"""With fewer rows that differ otherwise than most do, the spread is not known well enough."""

_STEPS = 200
_MOST_ROWS = 1_000_000


def added_rows(away: float) -> float:
    """Return how many rows are added where so many differ otherwise than most do."""
    return 2.0 * HALF_ADDED_ROWS / (away + HALF_ADDED_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Two sessions of the same rows, whose figures are shares."""

    rows: float
    units: float
    """The rows; with clusters, these."""
    freedom: float
    """Degrees of freedom."""
    away: float
    """Rows that differ otherwise than most do, over the design effect."""
    variance: float
    """Of the difference of a unit."""
    centre: float
    """The figure, m."""
    product: float
    """The mean product of a row's two values, M."""
    apart: float
    """By how much units differ in both sessions alike: a variance."""
    effect: float = 1.0
    """The design effect, E."""

    def fall(self, margin: float, confidence: float) -> float | None:
        """Return the smallest true fall that is shown: see `paired.smallest_fall`."""
        if min(self.away, self.units) < LEAST_AWAY:
            return None
        t = student_t.two_sided(confidence, self.freedom)
        t += student_t.quantile(POWER, self.freedom)
        centre, units = self.centre, self.units
        own = centre / (self.effect * (centre - self.product))
        fall = 0.0
        for _ in range(_STEPS):
            part = fall / centre
            left = 1.0 - part
            noise = (1.0 + left * left + (left - left * left) * own) / 2.0
            added = added_rows(min(self.rows - 1.0, self.away * max(1.0, noise)))
            whole = units + added
            spread = self.variance * noise + part * part * self.apart
            square = ((spread + fall * fall) * units + added / 2.0) / whole
            error = ((square - (fall * units / whole) ** 2) / whole) ** 0.5
            found = (margin + t * error) * whole / units
            if found > centre:
                return None
            if abs(found - fall) < 1e-6:
                return found if found > 0.0 else None
            fall = max(0.0, found)
        return None

    def of(self, rows: float, runs: float = 1.0) -> Design:
        """Return the design with so many rows, and so many times the runs of each.

        More runs take away the noise that rows have by themselves, one in E of it.
        """
        times = rows / self.rows
        variance = self.variance * (1.0 / (self.effect * runs) + 1.0 - 1.0 / self.effect)
        lost = self.units - self.freedom
        return replace(
            self,
            rows=rows,
            units=self.units * times,
            freedom=max(1.0, self.units * times - lost),
            away=self.away * times,
            variance=variance,
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A design by its size."""

    rows: int
    n: int

    @property
    def runs(self) -> int:
        """Runs of one session."""
        return self.rows * self.n

    @property
    def rounded(self) -> Choice:
        """The same with rows to two digits, upwards."""
        step = int(10 ** max(0, len(str(self.rows)) - 2))
        return replace(self, rows=math.ceil(self.rows / step) * step)


def cheapest(
    design: Design, n: int, *, fall: float, margin: float, confidence: float, ns: Iterable[int]
) -> Choice | None:
    """Return the design with the fewest runs that shows a fall; None where too many rows do not.

    `design` has n runs a row; `ns` are numbers of runs that are looked at.
    """
    found = []
    for other in dict.fromkeys(ns):
        rows = _fewest_rows(design, other / n, fall, margin, confidence)
        if rows is not None:
            found.append(Choice(rows, other))
    return min(found, key=lambda each: (each.runs, each.n), default=None)


def _fewest_rows(
    design: Design, runs: float, fall: float, margin: float, confidence: float
) -> int | None:
    """Return how many rows show a fall, by bisection."""

    def shows(rows: int) -> bool:
        found = design.of(rows, runs).fall(margin, confidence)
        return found is not None and found <= fall

    low, high = 1, 16
    while not shows(high):
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


# ---- before anything has run


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often runs of rows pass, before a design is chosen."""

    rate: float
    """The chance of a pass, over all rows."""
    spread: float
    """The deviation of the rows' chances."""
    size: float = 1.0
    """Rows of a cluster."""
    between: float = 0.0
    """The deviation of the clusters' chances."""

    def design(self, rows: int, n: int) -> Design:
        """Return the comparison of two sessions in which each row has the same chance."""
        units = rows / self.size
        rows_apart, clusters_apart = self.spread**2, self.between**2
        noise = 2.0 * (self.rate * (1.0 - self.rate) - rows_apart) / n
        apart = rows_apart
        if self.size > 1.0:
            apart = clusters_apart + max(0.0, rows_apart - clusters_apart) / self.size
        return Design(
            rows=rows,
            units=units,
            freedom=max(1.0, units - 1.0),
            away=rows * (1.0 - self._tie(n)),
            variance=noise / self.size,
            centre=self.rate,
            product=self.rate**2 + rows_apart,
            apart=apart,
        )

    def half_width(self, rows: int, n: int, confidence: float) -> float | None:
        """Return half of the interval of pass@1; None with fewer than five clusters."""
        units, square = rows / self.size, self.spread**2
        noise = (self.rate * (1.0 - self.rate) - square) / (rows * n)
        between = self.between**2 if self.size > 1.0 else 0.0
        error = math.sqrt(between / units + max(0.0, square - between) / rows + noise)
        if self.size > 1.0 and units < 5:
            return None
        t = student_t.two_sided(confidence, max(1.0, units - 1.0))
        is_whole = n == 1 and self.size == 1.0
        if is_whole:
            low, high = agresti_coull(self.rate, rows, student_t.two_sided(confidence, math.inf))
            return (high - low) / 2.0
        away = units * (1.0 - max(self._all(n * self.size, is_pass=each) for each in (True, False)))
        worth = self.rate * (1.0 - self.rate) / error**2
        surplus = max(0.0, worth - units) * away / (away + HALF_SURPLUS_ROWS)
        low, high = agresti_coull(self.rate, units + surplus, t)
        if self.size > 1.0:
            low, high = min(low, self.rate - t * error), max(high, self.rate + t * error)
        return (min(1.0, high) - max(0.0, low)) / 2.0

    def _tie(self, n: int) -> float:
        """Return the chance that a row passes as often in both sessions, of beta chances."""
        return sum(math.comb(n, k) ** 2 * self._mean_of(2 * k, 2 * (n - k)) for k in range(n + 1))

    def _all(self, runs: float, *, is_pass: bool) -> float:
        return self._mean_of(runs, 0.0) if is_pass else self._mean_of(0.0, runs)

    def _mean_of(self, passes: float, fails: float) -> float:
        """Return the mean of p^passes (1 - p)^fails over the rows' chances."""
        return _beta_moment(self.rate, self.spread, passes, fails)


@lru_cache(maxsize=4096)
def _beta_moment(rate: float, spread: float, passes: float, fails: float) -> float:
    most = rate * (1.0 - rate)
    if spread**2 >= most * 0.999_999:  # every row passes always, or never
        return rate * (fails == 0.0) + (1.0 - rate) * (passes == 0.0)
    if spread**2 <= most * 1e-9:
        return float(rate**passes * (1.0 - rate) ** fails)
    scale = most / spread**2 - 1.0
    a, b = rate * scale, (1.0 - rate) * scale
    parts = (
        math.lgamma(a + passes) - math.lgamma(a),
        math.lgamma(b + fails) - math.lgamma(b),
        math.lgamma(a + b) - math.lgamma(a + b + passes + fails),
    )
    return math.exp(math.fsum(parts))
