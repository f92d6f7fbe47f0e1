"""How sure a figure is whose rows belong together: the cluster is the unit, not the row.

A figure stays the mean over rows. Its standard error is the cluster-robust one (Liang and Zeger
1986, Biometrika 73:13) with the correction for few clusters of Bell and McCaffrey (2002, Survey
Methodology 28:169), CR2, and t has the degrees of freedom that Satterthwaite's rule gives it
(Imbens and Kolesar 2016, Review of Economics and Statistics 98:701): with G clusters of one size,
exactly G - 1. Knows neither reports nor gates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...verdicts import Interval
from . import student_t
from .estimators import FEWEST_CLUSTERS, finite, mean, scale_of
from .intervals import HALF_SURPLUS_ROWS, agresti_coull

if TYPE_CHECKING:
    from .estimators import Floats, Places


@dataclass(frozen=True)
class Groups:
    """Values by cluster."""

    places: Places
    """The cluster of each value, from 0."""
    sizes: Floats
    """How many values each cluster has."""

    @classmethod
    def of(cls, clusters: Places) -> Groups:
        """Return the clusters that values have, each given by any number."""
        _, places, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        return cls(places, sizes.astype(float))

    def __len__(self) -> int:
        """How many clusters there are."""
        return len(self.sizes)

    @property
    def shares(self) -> Floats:
        """Which part of the values each cluster has."""
        return np.asarray(self.sizes / self.sizes.sum(), dtype=np.float64)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each cluster's values, in clusters of the mean size."""
        sums = np.bincount(self.places, values, len(self))
        return np.asarray(sums * (len(self) / len(values)), dtype=np.float64)

    def squares(self, values: Floats, centre: float) -> float:
        """Return the sum of the squared deviations of clusters from a centre.

        Each is over 1 - p, p being the cluster's share, as CR2 has it; and (G - 1) / G times that,
        so that with clusters of one size it is the plain sum.
        """
        number = len(self)
        off = self.sums(values) - centre * self.shares * number
        return math.fsum((off * off / (1.0 - self.shares)).tolist()) * (number - 1) / number

    def error(self, values: Floats) -> float:
        """Return the standard error of the mean of the values."""
        scale = scale_of(values)
        number, scaled = len(self), values / scale
        square = self.squares(scaled, mean(scaled)) / (number * (number - 1))
        return math.sqrt(square) * scale

    @property
    def freedom(self) -> float:
        """Degrees of freedom of that error, by Satterthwaite's rule for independent rows."""
        shares = self.shares
        own = shares * shares / (1.0 - shares)
        return float(1.0 / ((shares**2).sum() + own.sum() ** 2 - (own**2).sum()))

    @property
    def equal(self) -> float:
        """Return as many clusters of one size as these are worth at least (Kish 1965)."""
        return float(1.0 / (self.shares**2).sum())


def is_clustered(clusters: Places | None) -> bool:
    """Return whether any cluster has more than one value: else values are independent."""
    return clusters is not None and len(np.unique(clusters)) < len(clusters)


def cluster_interval(
    values: Floats, clusters: Places, *, confidence: float = 0.95, k: int | None = None
) -> Interval | None:
    """Return the interval of the mean of one value a row, with rows in clusters.

    With `k`, the K of a pass@k or pass^k or 1, values are within 0 to 1: the interval is that of
    Agresti and Coull with an effective number of clusters, as `unit_interval` has it of rows; where
    `m -+ t e` reaches further, to there. Else it is the latter. None with fewer than five clusters,
    and where values without bounds have no spread.
    """
    groups = Groups.of(clusters)
    if len(groups) < FEWEST_CLUSTERS:
        return None
    centre, error = mean(values), groups.error(values)
    t = student_t.two_sided(confidence, groups.freedom)
    low, high = finite(centre - t * error), finite(centre + t * error)
    if k is None:
        return Interval(low, high, "t (clusters)", confidence) if error else None
    least, most = agresti_coull(centre, worth_of(values, groups, k=k), t)
    low, high = max(0.0, min(low, least)), min(1.0, max(high, most))
    return Interval(low, high, "agresti-coull (clusters)", confidence)


def worth_of(values: Floats, groups: Groups, *, k: int) -> float:
    """Return how many independent rows of 0 and 1 the values are worth, each in 0..1."""
    centre, error = mean(values), groups.error(values)
    means = np.bincount(groups.places, values, len(groups)) / groups.sizes
    away = len(groups) - max(int((means == 0.0).sum()), int((means == 1.0).sum()))
    worth = centre * (1.0 - centre) / error**2 if error else 0.0
    surplus = max(0.0, worth - groups.equal) * away / (away + HALF_SURPLUS_ROWS * k)
    return float(groups.equal + surplus)
