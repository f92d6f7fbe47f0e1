"""The cluster bootstrap: whole rows are drawn with replacement, and their mean taken again.

Knows values, one a row; not what they measure. numpy is imported when a bootstrap is drawn, never
with this module: it takes longer to load than pytest needs to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .estimators import scale_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 10_000
"""How often the rows are drawn, unless given."""

FEW_VALUES = 256
"""Up to so many different values, how often each is drawn is drawn instead of the rows."""

_CELLS = 1_000_000
"""Rows drawn at a time: what fits a processor's cache."""


class Pivot(NamedTuple):
    """The bootstrap distribution of (resampled mean - mean) / its own standard error, sorted."""

    mean: float
    """The mean of the rows."""
    error: float
    """Its standard error: the sample standard deviation over the root of the number of rows."""
    statistics: Floats
    """One studentised deviation a resample, in rising order; infinite where it had no spread."""

    def at(self, share: float) -> float:
        """The statistic below which `share` of the resamples lie (inverted distribution)."""
        import numpy as np

        return float(np.quantile(self.statistics, share, method="inverted_cdf"))

    def share_beyond(self, size: float) -> float:
        """Share of resamples at least `size` away from 0, counting the rows as drawn as one more.

        (1 + hits) / (1 + resamples): never 0 (Davison and Hinkley 1997, section 4.2.3).
        """
        import numpy as np

        hits = int(np.count_nonzero(np.abs(self.statistics) >= size * (1 - 1e-12)))
        return (1 + hits) / (1 + len(self.statistics))


def studentised(
    values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0
) -> Pivot | None:
    """The bootstrap-t of the mean (Efron and Tibshirani 1993, "An Introduction to the Bootstrap",
    section 12.5); None when the values have no spread to estimate an error from.

    The same values in the same order with the same seed give the same pivot, on any machine.
    """
    import numpy as np

    rows = np.asarray(values, dtype=np.float64)
    if len(rows) < 2 or rows.min() == rows.max():
        return None
    unit = scale_of(values)
    rows = rows / unit
    mean = float(rows.mean())
    deviations = rows - mean
    shifts, squares = _resampled_moments(deviations, resamples, np.random.default_rng(seed))
    scale = len(rows) - 1
    error = float(np.sqrt(np.mean(deviations**2) / scale))
    # A resample of equal rows has no spread; rounding leaves it a little, far below any real one.
    variances = squares - shifts**2
    spread = np.where(variances > 1e-12 * np.mean(deviations**2), variances, 0.0)
    statistics = np.sort(_ratio(shifts, np.sqrt(spread / scale)))
    return Pivot(mean * unit, error * unit, statistics)


def share_of_signs(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Share of random sign changes whose sum is as far from 0 as the values', theirs being one.

    (1 + hits) / (1 + resamples), as `Pivot.share_beyond`; for values of which few are different.
    """
    import numpy as np

    rows = np.abs(np.asarray(values, dtype=np.float64)) / scale_of(values)
    seen = abs(float(np.sum(np.sign(values) * rows))) * (1 - 1e-12)
    distinct, counts = np.unique(rows, return_counts=True)
    kept = np.random.default_rng(seed).binomial(counts, 0.5, size=(resamples, len(distinct)))
    sums = (2 * kept - counts) @ distinct
    return (1 + int(np.count_nonzero(np.abs(sums) >= seen))) / (1 + resamples)


def _ratio(shifts: Floats, errors: Floats) -> Floats:
    """shifts / errors, infinite where the error is 0: a resample of equal rows is never typical."""
    import numpy as np

    ratio = np.copysign(np.full_like(shifts, np.inf), shifts)
    np.divide(shifts, errors, out=ratio, where=errors > 0)
    return ratio


def _resampled_moments(
    deviations: Floats, resamples: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean and mean square of each resample."""
    import numpy as np

    distinct, counts = np.unique(deviations, return_counts=True)
    if len(distinct) <= FEW_VALUES:
        return _moments_by_counts(distinct, counts, resamples, random)
    return _moments_by_rows(deviations, resamples, random)


def _moments_by_counts(
    distinct: Floats, counts: NDArray[Any], resamples: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draws how often each value comes up: multinomial, the same law as drawing rows."""
    rows = int(counts.sum())
    drawn = random.multinomial(rows, counts / rows, size=resamples)
    return drawn @ distinct / rows, drawn @ distinct**2 / rows


def _moments_by_rows(
    deviations: Floats, resamples: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    import numpy as np

    rows = len(deviations)
    shifts, squares = np.empty(resamples), np.empty(resamples)
    step = max(1, _CELLS // rows)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        drawn = deviations[random.integers(0, rows, size=(stop - start, rows))]
        shifts[start:stop] = drawn.mean(axis=1)
        squares[start:stop] = np.einsum("ij,ij->i", drawn, drawn) / rows
    return shifts, squares
