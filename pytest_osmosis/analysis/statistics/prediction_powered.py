"""What people would say of every row, from what they said of some and a judge of all: pure numbers.

Prediction-powered inference (Angelopoulos et al. 2023, Science 382:669) with its weight tuned
(PPI++, arXiv:2311.01453): the mean of the marks, moved by `weight` times as far as the judge's mean
over all rows lies from that over the marked ones. A judge who errs always to one side does no
harm; the closer it follows people, the more its other rows are worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...verdicts import Interval
from . import student_t
from .clustered import Groups, cluster_interval, worth_of
from .estimators import FEWEST_CLUSTERS
from .intervals import agresti_coull, unit_interval

if TYPE_CHECKING:
    from .estimators import Flags, Floats, Places

FEWEST_MARKED = 10
"""With fewer marked rows there is no interval: how far a judge can be followed is not known."""
MOST_WIDER = 1.1
"""A wider interval than so many times that of the marks alone is not given, but that one."""
_ADDED = 0.5
"""How much each of four marks weighs that are added: right and wrong, at both ends of the scale."""


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The share of rows that people would call right."""

    value: float
    interval: Interval | None
    """None with too few marks."""
    weight: float
    """How much the judge counts: 0 where the marks stand alone."""


def corrected_mean(
    scores: Floats,
    judged: Floats,
    marks: Floats,
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    clusters: Places | None = None,
    confidence: float = 0.95,
) -> CorrectedMean | None:
    """Return what people would say on average; None where nothing is marked.

    One value a row: `scores` are the judge's; of marked rows `judged` is its score of the marked
    runs and `marks` what people say, in 0..1, both NaN elsewhere. `scale`: between what scores
    lie; `clusters`: the cluster of each row, where rows belong together.
    """
    marked = ~np.isnan(marks)
    if not (number := int(marked.sum())):
        return None
    said, followed = marks[marked], judged[marked]
    weight, residuals, added = _fitted(said, followed, scale)
    alone = _alone(said, None if clusters is None else clusters[marked], confidence)
    if number < FEWEST_MARKED or alone is None:
        return CorrectedMean(_within(_moved(said, followed, scores, weight)), None, weight)
    parts = weight * (scores - scores.mean()) / scores.size
    variance = _variance(parts, residuals, marked, clusters)
    units = number if clusters is None else len(np.unique(clusters[marked]))
    t = student_t.two_sided(confidence, units - 1)
    reach = t * math.sqrt(variance * units / (units - 1))
    centre = added[0] + weight * (float(scores.mean()) - added[1])
    value = _within(_moved(said, followed, scores, weight))
    low, high = _within(centre - reach), _within(centre + reach)
    if clusters is not None:  # of few clusters, no spread is sure: as that of the marks alone
        plain = np.r_[said, 0.0, 0.0, 1.0, 1.0] - added[0]
        gain = _variance(np.zeros_like(scores), plain, marked, clusters) / variance
        groups = Groups.of(clusters[marked])
        least, most = agresti_coull(value, gain * worth_of(said, groups, k=1), t)
        low, high = min(low, least), max(high, most)
    if high - low > MOST_WIDER * (alone.high - alone.low):
        return CorrectedMean(float(said.mean()), alone, 0.0)
    found = Interval(min(low, value), max(high, value), "prediction-powered", confidence)
    return CorrectedMean(value, found, weight)


def _fitted(
    said: Floats, followed: Floats, scale: tuple[float, float]
) -> tuple[float, Floats, tuple[float, float]]:
    """Return the weight, what it leaves of each mark and added mark, and the means of both sides.

    The weight that makes the variance least is the slope of marks over scores. The four marks that
    are added (Agresti and Min 2005 add as many to a pair of shares) keep a judge that has agreed
    with a few marks from being taken for one that never errs.
    """
    marks = np.r_[said, 0.0, 0.0, 1.0, 1.0]
    scores = np.r_[followed, scale, scale]
    weights = np.r_[np.ones_like(said), np.full(4, _ADDED)]
    means = float(np.average(marks, weights=weights)), float(np.average(scores, weights=weights))
    from_marks, from_scores = marks - means[0], scores - means[1]
    spread = float((weights * from_scores**2).sum())
    weight = max(0.0, float((weights * from_marks * from_scores).sum()) / spread)
    return weight, from_marks - weight * from_scores, means


def _variance(parts: Floats, residuals: Floats, marked: Flags, clusters: Places | None) -> float:
    """Return the variance of a sum over rows, and of what marks add to it, by cluster."""
    number = int(marked.sum())
    total = number + 4 * _ADDED
    sums = parts.copy()
    sums[marked] += residuals[:number] / total
    if clusters is not None:
        places = np.unique(clusters, return_inverse=True)[1]
        sums = np.asarray(np.bincount(places, sums), dtype=np.float64)
    added = _ADDED * float((residuals[number:] ** 2).sum()) / total**2
    return float((sums**2).sum()) + added


def _moved(said: Floats, followed: Floats, scores: Floats, weight: float) -> float:
    return float(said.mean()) + weight * (float(scores.mean()) - float(followed.mean()))


def _alone(said: Floats, clusters: Places | None, confidence: float) -> Interval | None:
    """Return the interval of the marks alone."""
    if clusters is None:
        return unit_interval(said, confidence=confidence)
    if len(np.unique(clusters)) < FEWEST_CLUSTERS:
        return None
    return cluster_interval(said, clusters, confidence=confidence, k=1)


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
