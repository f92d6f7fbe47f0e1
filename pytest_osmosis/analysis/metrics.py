"""The figures of a summary: pass@k, pass^k, and the usual moments of a set of scores.

Pure numbers from the standard library. Nothing here knows what a run, a row or a report is;
how sure a figure is lives in `intervals`, what it decides in `gates`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

REPORTED_KS = (1, 3, 5, 10)
"""The k that summaries give besides n itself."""

_CERTAIN = 40
"""exp(-40) is below half the spacing of floats under 1.0: 1 - exp(-40) is 1.0."""

_VANISHED = 746
"""exp(-746) is below half the smallest positive float: it rounds to 0.0."""


@lru_cache(maxsize=65_536)
def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k runs, drawn without replacement from n with c passes, passed.

    `1 - C(n-c, k) / C(n, k)`, the unbiased estimator of Chen et al. 2021, "Evaluating Large
    Language Models Trained on Code" (arXiv:2107.03374), equation 1. The result is the exact
    rational, rounded once: both binomials are reduced to products of min(c, k) integers, and where
    those would be long the result is 1.0 to the last bit already.

    Raises:
        ValueError: unless 0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    if n - c < k:
        return 1.0
    few, many = sorted((c, k))
    if few * many > _CERTAIN * n:
        return 1.0
    whole = math.perm(n, few)
    return (whole - math.perm(n - many, few)) / whole


@lru_cache(maxsize=65_536)
def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all k runs, drawn without replacement from n with c passes, passed: pass^k.

    `C(c, k) / C(n, k)`, Yao et al. 2024, "tau-bench" (arXiv:2406.12045), section 3. Exact and
    rounded once, as `pass_at_k` is.

    Raises:
        ValueError: unless 0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    if c < k:
        return 0.0
    few, many = sorted((n - c, k))
    if few * many > _VANISHED * n:
        return 0.0
    return math.perm(n - many, few) / math.perm(n, few)


def reported_ks(n: int) -> tuple[int, ...]:
    """The k for which a session of n runs a row reports pass@k: none when n is 1.

    >>> reported_ks(1), reported_ks(4), reported_ks(12)
    ((), (1, 3, 4), (1, 3, 5, 10, 12))
    """
    if n <= 1:
        return ()
    return (*(k for k in REPORTED_KS if k < n), n)


def mean_pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> float | None:
    """pass@k averaged over rows, each given as (finished runs, passes).

    A row with fewer than k finished runs uses those it has (k becomes their number); a row with
    none is left out. None when no row is left.
    """
    values = [pass_at_k(n, c, min(n, k)) for n, c in counts if n]
    return mean(values) if values else None


def mean_pass_hat_k(counts: Iterable[tuple[int, int]], k: int) -> float | None:
    """pass^k averaged over rows, each given as (finished runs, passes), as `mean_pass_at_k`."""
    values = [pass_hat_k(n, c, min(n, k)) for n, c in counts if n]
    return mean(values) if values else None


class Moments(NamedTuple):
    """What a summary says about a set of scores."""

    mean: float
    """Arithmetic mean."""
    std: float
    """Population standard deviation (divided by the number of scores, not one less)."""
    min: float
    """Lowest score."""
    max: float
    """Highest score."""


def moments(scores: Iterable[float | None]) -> Moments | None:
    """Mean, population standard deviation, lowest and highest; a missing score (None) is 0.0.

    None when there are no scores at all.
    """
    values = [0.0 if score is None else float(score) for score in scores]
    if not values:
        return None
    centre = _mean(values)
    return Moments(
        mean=centre, std=_population_std(values, centre), min=min(values), max=max(values)
    )


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, summed without loss; 0.0 when there are no values, as for no score."""
    return _mean(values) if values else 0.0


def population_std(values: Sequence[float]) -> float:
    """Square root of the mean squared deviation from the mean; 0.0 when there are no values."""
    return _population_std(values, _mean(values)) if values else 0.0


def finite(value: float) -> float:
    """The value, or the largest float in the place of an infinity: huge scores can be that far."""
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def _mean(values: Sequence[float]) -> float:
    if len(values) == 1:
        return values[0]
    scale = scale_of(values)
    centre = math.fsum(value / scale for value in values) / len(values) * scale
    return min(max(centre, min(values)), max(values))


def _population_std(values: Sequence[float], centre: float) -> float:
    scale = scale_of(values)
    squares = math.fsum(((value / scale) - (centre / scale)) ** 2 for value in values)
    return math.sqrt(squares / len(values)) * scale


def scale_of(values: Sequence[float]) -> float:
    """A power of two that keeps sums and squares of huge scores finite; 1.0 for sane ones."""
    largest = max(abs(value) for value in values)
    return 2.0**600 if largest > 2.0**400 else 1.0


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"passes must be between 0 and the number of runs, not {c} of {n}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the number of runs ({n}), not {k}")
