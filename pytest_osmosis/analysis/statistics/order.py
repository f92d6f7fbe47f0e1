"""Percentiles and their limits, by order statistics. Knows neither runs nor gates."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from ...verdicts import Interval
from . import student_t
from .clustered import Groups, is_clustered
from .estimators import FEWEST_CLUSTERS, mean
from .intervals import HALF_SURPLUS_ROWS, standard_error

if TYPE_CHECKING:
    from .estimators import Flags, Floats, Places


def nearest_rank(rising: Floats, p: float) -> float:
    """Return the percentile by nearest rank: the smallest value with the share p at or below it."""
    return float(rising[max(0, math.ceil(p * len(rising) - 1e-9) - 1)])


def fewest_rows(p: float, confidence: float) -> int:
    """Return from how many independent values on a percentile has both limits."""
    tail = (1.0 - confidence) / 2.0
    return math.ceil(math.log(tail) / math.log(max(p, 1.0 - p)) - 1e-9)


def percentile_limits(
    values: Floats, p: float, *, confidence: float = 0.95, clusters: Places | None = None
) -> Interval | None:
    """Return the limits of a percentile of the runs of rows, NaN where a run has no value.

    With one run a row they are those of order statistics, exact whatever the distribution: so many
    values lie at or below the percentile as a binomial variate of N and p says (David and Nagaraja
    2003, Order Statistics, 7.1). With several, N is the number of independent values that the runs
    are worth, by the design effect of the share at or below the percentile (Korn and Graubard 1998,
    Survey Methodology 24:193): at least the number of rows, or of `clusters`. A limit that so few
    values do not have is infinite. None without values, and with fewer than five clusters.
    """
    known = ~np.isnan(values)
    if not known.any():
        return None
    rising = np.sort(values[known])
    worth = _independent(values <= nearest_rank(rising, p), known, confidence, clusters)
    if worth is None:
        return None
    tail, share = (1.0 - confidence) / 2.0, worth / len(rising)

    def at_least(count: float) -> float:
        """The chance that so many of `worth` values lie below the percentile."""
        return student_t.incomplete_beta(p, 1.0 - p, count, worth - count + 1.0)

    ranks = range(1, len(rising) + 1)
    low = bisect_left(ranks, True, key=lambda at: 1.0 - at_least((at - 1) * share + 1.0) > tail)
    high = 1 + bisect_left(ranks, True, key=lambda at: at_least(at * share) <= tail)
    return Interval(
        float(rising[low - 1]) if low else -math.inf,
        float(rising[high - 1]) if high <= len(rising) else math.inf,
        "order statistics",
        confidence,
    )


def _independent(
    below: Flags, known: Flags, confidence: float, clusters: Places | None
) -> float | None:
    """Return how many independent values the runs are worth, by which of them are `below`."""
    runs = known.sum(axis=1)
    shares = (below & known).sum(axis=1) / runs
    if clusters is not None and is_clustered(clusters):
        groups = Groups.of(clusters)
        if len(groups) < FEWEST_CLUSTERS:
            return None
        units, freedom = groups.equal, groups.freedom
        error: float | None = groups.error(shares)
        means = np.bincount(groups.places, shares, len(groups)) / groups.sizes
    elif runs.max() == 1:
        return float(len(runs))
    else:
        units, freedom, error = float(len(runs)), len(runs) - 1, standard_error(shares)
        means = shares
    if not error:
        return units
    centre = mean(shares)
    away = len(means) - max(int((means == 0.0).sum()), int((means == 1.0).sum()))
    ratio = student_t.two_sided(confidence, math.inf) / student_t.two_sided(confidence, freedom)
    surplus = max(0.0, centre * (1.0 - centre) / error**2 * ratio**2 - units)
    return min(float(runs.sum()), units + surplus * away / (away + HALF_SURPLUS_ROWS))
