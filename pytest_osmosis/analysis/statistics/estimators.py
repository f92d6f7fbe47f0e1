"""Estimators: pass@k and pass^k of one row, the mean and the deviation of any values.

Pure numbers: no runs, rows or reports. Arrays are worked on through their own methods, so that
numpy need not be imported. `..metrics` says which figures are made of them, `intervals` how sure a
figure is.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Flags: TypeAlias = NDArray[np.bool_]
    Places: TypeAlias = NDArray[np.intp]

REPORTED_KS = (1, 3, 5, 10)
"""The k that summaries give besides n itself."""

FEWEST_CLUSTERS = 5
"""With fewer clusters of rows there is no interval: how much they differ is not known."""

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


def mean(values: Floats) -> float:
    """Return the arithmetic mean, summed without loss; 0.0 when there are no values."""
    if not values.size:
        return 0.0
    low, high, scale = float(values.min()), float(values.max()), scale_of(values)
    return min(max(math.fsum((values / scale).tolist()) / values.size * scale, low), high)


def population_std(values: Floats) -> float:
    """Return the root of the mean squared deviation from the mean; 0.0 when there are no values."""
    if not values.size:
        return 0.0
    scale = scale_of(values)
    squares = (values / scale - mean(values) / scale) ** 2
    return math.sqrt(float(squares.mean())) * scale


def finite(value: float) -> float:
    """Return the value, an infinity as the largest float: huge scores can be that far apart."""
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def scale_of(values: Floats) -> float:
    """Return a power of two that keeps sums and squares of huge scores finite; usually 1.0."""
    return 2.0**600 if abs(values).max(initial=0.0) > 2.0**400 else 1.0


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"passes must be between 0 and the number of runs, not {c} of {n}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the number of runs ({n}), not {k}")
