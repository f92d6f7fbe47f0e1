"""How sure a difference is: rows measured twice, one difference a row.

- one run each, pass or fail: the interval of Agresti and Min, McNemar's exact p
- fewer than 12 rows away from the commonest difference: Agresti-Min within -1..1, else t; p by sign
  randomisation, exact where fewer than 12 rows differ
- more: the studentised cluster bootstrap, for both

Knows neither reports nor gates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ...verdicts import Interval, Paired
from . import student_t
from .bootstrap import RESAMPLES, share_of_signs, studentised
from .estimators import finite, mean, scale_of
from .intervals import normal_quantile, t_interval

INFORMATIVE_ROWS = 12
"""Rows away from the commonest difference from which resampling is used."""

WIDEST_PIVOT = 2.0
"""So many t intervals from the figure is as far as a limit lies: resampled tails can be wild."""


def paired(
    differences: Sequence[float],
    *,
    confidence: float = 0.95,
    binary: bool = False,
    span: float = math.inf,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Paired:
    """The mean of one difference a row; `binary`: both sides are one pass or fail a row.

    `span`: no difference can lie farther from 0.
    """
    centre = mean(differences)
    p, method = _p(differences, binary=binary, resamples=resamples, seed=seed)
    interval = paired_interval(
        differences,
        confidence=confidence,
        binary=binary,
        span=span,
        resamples=resamples,
        seed=seed,
    )
    return Paired(centre, interval, p, method)


def paired_interval(
    differences: Sequence[float],
    *,
    confidence: float = 0.95,
    binary: bool = False,
    span: float = math.inf,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The interval of the mean of one difference a row, within -span..span."""
    if not differences:
        return None
    within_one = all(-1.0 <= value <= 1.0 for value in differences)
    if binary or (_informative(differences) < INFORMATIVE_ROWS and within_one):
        return agresti_min(differences, confidence=confidence)
    if _informative(differences) < INFORMATIVE_ROWS:
        found = t_interval(differences, confidence=confidence)
    else:
        found = bootstrap_interval(
            differences, confidence=confidence, resamples=resamples, seed=seed
        )
    return found and replace(found, low=max(-span, found.low), high=min(span, found.high))


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


def agresti_min(differences: Sequence[float], *, confidence: float = 0.95) -> Interval:
    """`d -+ z s / sqrt(N + 2)` after half a row of each of +1 and -1, and one of 0, were added.

    Agresti and Min 2005, "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24:729, there for passes and fails; held within -1..1.
    """
    rows = len(differences) + 2.0
    centre = math.fsum(differences) / rows
    square = (math.fsum(value * value for value in differences) + 1.0) / rows
    reach = normal_quantile(confidence) * math.sqrt(max(0.0, square - centre * centre) / rows)
    low, high = max(-1.0, centre - reach), min(1.0, centre + reach)
    return Interval(low, high, "agresti-min", confidence)


def mcnemar(regressed: int, fixed: int) -> float:
    """Two-sided exact p of McNemar's test: `2 P(X <= min(b, m))`, X binomial(b + m, 1/2).

    At most 1. McNemar 1947, Psychometrika 12:153, by the exact binomial law.
    """
    changed, fewer = regressed + fixed, min(regressed, fixed)
    term = total = 1
    for i in range(fewer):
        term = term * (changed - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / (1 << changed))


def sign_randomisation(differences: Sequence[float]) -> float:
    """Two-sided exact p: the share of sign changes whose sum is as far from 0 as the one seen.

    Fisher's randomisation test for pairs (1935, "The Design of Experiments", section 21), over
    all 2^D sign changes of the D differences that are not 0. Equal to `mcnemar` for +1 and -1.
    """
    scale = scale_of(differences) if differences else 1.0
    moved = [value / scale for value in differences if value]
    seen = abs(math.fsum(moved)) * (1.0 - 1e-12)
    signed = product(*((value, -value) for value in moved))
    return sum(abs(math.fsum(values)) >= seen for values in signed) / (1 << len(moved))


def _p(
    differences: Sequence[float], *, binary: bool, resamples: int, seed: int
) -> tuple[float | None, str | None]:
    if not differences:
        return None, None
    if binary:
        regressed = sum(value < 0 for value in differences)
        fixed = sum(value > 0 for value in differences)
        return mcnemar(regressed, fixed), "mcnemar exact"
    if _differing(differences) < INFORMATIVE_ROWS:
        return sign_randomisation(differences), "sign randomisation"
    if min(differences) == max(differences):
        return 2.0 ** (1 - len(differences)), "sign randomisation"
    pivot = studentised(differences, resamples=resamples, seed=seed)
    if pivot is None or _informative(differences) < INFORMATIVE_ROWS:
        # Rows as drawn are too often all alike to tell anything: only the signs do.
        return share_of_signs(differences, resamples=resamples, seed=seed), "sign randomisation"
    return pivot.share_beyond(abs(pivot.mean) / pivot.error), "bootstrap-t"


def _differing(differences: Sequence[float]) -> int:
    return sum(value != 0.0 for value in differences)


def _informative(differences: Sequence[float]) -> int:
    """How many rows differ otherwise than most do: what resampling has to go by."""
    return len(differences) - max(Counter(differences).values())
