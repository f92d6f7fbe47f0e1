"""Student's t distribution: tail and quantile, from the standard library only.

The tail is the regularised incomplete beta function by its continued fraction (Press et al.,
Numerical Recipes, 3rd edition, 6.4; DLMF 8.17.22), the quantile is bisection on it; with many
degrees of freedom, the expansion around the normal. Knows no data.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_MANY = 5_000
"""Degrees of freedom from which four terms around the normal are exact to 1e-11."""


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """The value that a t variate with `df` degrees of freedom stays below with chance p.

    Raises:
        ValueError: unless 0 < p < 1 and df > 0.
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"a quantile needs a chance between 0 and 1, not {p}")
    if df <= 0:
        raise ValueError(f"degrees of freedom must be positive, not {df}")
    if p == 0.5:
        return 0.0
    if df >= _MANY:
        return _near_normal(NormalDist().inv_cdf(p), df)
    return math.copysign(_upper(min(p, 1.0 - p), df), p - 0.5)


def two_sided(confidence: float, df: float) -> float:
    """The t that holds `confidence` of the distribution between -t and t."""
    return -quantile((1.0 - confidence) / 2.0, df)


def tail(t: float, df: float) -> float:
    """Chance of a t variate above t: `I_x(df/2, 1/2) / 2` with `x = df / (df + t^2)`, t >= 0.

    With infinitely many degrees of freedom, that of a normal one.
    """
    if math.isinf(df):
        return NormalDist().cdf(-t)
    half = 0.5 * incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2.0, 0.5)
    return half if t >= 0 else 1.0 - half


def _upper(chance: float, df: float) -> float:
    """The positive t with `chance` < 1/2 above it, by bisection to the last bits."""
    low, high = 0.0, 1.0
    while tail(high, df) > chance:
        low, high = high, 2.0 * high
    while high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if tail(middle, df) > chance:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b); `rest` is 1 - x, given apart so that it keeps its digits where x is near 1."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(a * _log(x, rest) + b * _log(rest, x) - _log_beta(a, b))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def _log(x: float, rest: float) -> float:
    """log(x), through its complement where x is near 1."""
    return math.log1p(-rest) if rest < 0.5 else math.log(x)


def _near_normal(z: float, df: float) -> float:
    """The quantile from the normal's, z (Abramowitz and Stegun 26.7.5)."""
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160.0
    return z + first / df + second / df**2 + third / df**3 + fourth / df**4


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), by the modified method of Lentz."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            return value
    raise ArithmeticError(f"the incomplete beta function did not converge at {x}, {a}, {b}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
