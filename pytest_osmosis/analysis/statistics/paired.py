"""How sure a difference is, and how small a one is shown: rows measured twice.

One method gives interval and p, so that neither contradicts the other. Knows neither reports nor
gates.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...verdicts import Interval, Paired
from . import student_t
from .designs import LEAST_AWAY, POWER, Design, added_rows
from .estimators import FEWEST_CLUSTERS, mean

if TYPE_CHECKING:
    from .clustered import Groups
    from .estimators import Floats, Places

METHOD = "agresti-min"


def paired(
    differences: Floats,
    *,
    confidence: float = 0.95,
    span: float = 1.0,
    clusters: Places | None = None,
) -> Paired:
    """The mean of one difference a row, none of which can lie farther than `span` from 0.

    The interval is `c -+ t e`, c and e being mean and standard error after rows were added, as
    Agresti and Min add two (2005, "Simple improved confidence intervals for comparing matched
    proportions", Statistics in Medicine 24:729): half of them without a difference, a quarter each
    with the largest in either direction. The more rows, D, differ otherwise than most do, the more
    is known of e: `8 / (D + 4)` rows are added. t has N - 1 degrees of freedom, and p is two-sided,
    `2 P(T > |c| / e)`: at most 1 - confidence exactly where the interval leaves 0 out.

    With `clusters`, the cluster of each row, these are the unit: see `Padded.by_cluster`. Fewer
    than five have no interval.
    """
    if not len(differences):
        return Paired(0.0, None, None, None)
    moved = differences / span
    padded = Padded.of(moved, clusters)
    if padded is None:
        return Paired(mean(differences), None, None, None)
    t, found = student_t.two_sided(confidence, padded.freedom), mean(moved)
    low = max(-1.0, min(found, padded.centre - t * padded.error))
    high = min(1.0, max(found, padded.centre + t * padded.error))
    p = 2.0 * student_t.tail(abs(padded.centre) / padded.error, padded.freedom)
    interval = Interval(low * span, high * span, METHOD, confidence)
    return Paired(mean(differences), interval, min(1.0, p), METHOD)


@dataclass(frozen=True, slots=True)
class Padded:
    """One difference a row within -1..1, rows added: what the interval is made of."""

    rows: int
    """Without those that were added; with clusters, these."""
    away: float
    """Rows that differ otherwise than most do; with clusters, over the design effect."""
    centre: float
    """The mean of all."""
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom."""
    variance: float
    """Of a row, or of a cluster, without those that were added."""
    effect: float = 1.0
    """The design effect: how many times the square of the error is that of independent rows."""

    @classmethod
    def of(cls, moved: Floats, clusters: Places | None = None) -> Padded | None:
        """Add the rows; None with too few clusters."""
        if (groups := _groups(clusters)) is not None:
            return cls.by_cluster(moved, groups)
        rows, away = len(moved), _away(moved)
        freedom = rows - 1 if rows > 1 else math.inf
        return cls(rows, away, *_padded(moved, rows, away), freedom, float(moved.var()))

    @classmethod
    def by_cluster(cls, moved: Floats, groups: Groups) -> Padded | None:
        """Add clusters of the mean size; None with too few.

        Their number is that of `added_rows`, D being the rows that differ otherwise than most over
        the design effect: rows of a cluster that move together are one piece of evidence.
        """
        number, found = len(groups), mean(moved)
        if number < FEWEST_CLUSTERS:
            return None
        plain = float(moved.var()) / (len(moved) - 1)
        effect = max(1.0, groups.error(moved) ** 2 / plain) if plain else 1.0
        away = _away(moved) / effect
        added = added_rows(away)
        whole = number + added
        centre = found * number / whole
        square = groups.squares(moved, centre) + added * (centre * centre + 0.5)
        variance = groups.squares(moved, found) / number
        error = math.sqrt(square) / whole
        return cls(number, away, centre, error, groups.freedom, variance, effect)


def _padded(moved: Floats, rows: int, away: float) -> tuple[float, float]:
    """Return the mean and its standard error, once rows were added."""
    whole = rows + added_rows(away)
    centre = math.fsum(moved.tolist()) / whole
    square = (math.fsum((moved * moved).tolist()) + added_rows(away) / 2.0) / whole
    return centre, math.sqrt((square - centre * centre) / whole)


def _away(differences: Floats) -> int:
    """How many rows differ otherwise than most do; what differs by rounding alone is equal."""
    return len(differences) - max(Counter(differences.round(9).tolist()).values())


def smallest_fall(
    then: Floats,
    now: Floats,
    *,
    margin: float,
    confidence: float,
    span: float = 1.0,
    clusters: Places | None = None,
) -> float | None:
    """Return the smallest true fall that puts the whole interval below -`margin`, 4 times of 5.

    `then` and `now` have one value a row; with a span of 1 they are shares. The fall is
    `margin + (t(1 - a/2) + t(0.8)) s`, s being the standard error of the paired difference and t
    that of N - 1 degrees of freedom: Cohen 1988, Statistical Power Analysis, 2.3, for pairs. Since
    `paired` adds rows without a difference, it is taken (N + A) / N times.

    A share that falls has another spread than it had, and the s of the fall decides (Connor 1987,
    Biometrics 43:207). It is computed as if every row fell by the same part d / m of itself, m
    being the mean of all values, and M the mean product of a row's two: half of the variance of the
    differences is the noise of the session that fell, changed in the ratio of `r m - r^2 M` to
    `m - M` with r = 1 - d / m; and the falls of the rows differ by `(d / m)^2 (M - m^2)`. With more
    noise, as many more rows move, and fewer are added.

    With `clusters` the same holds of these: s, N and the falls' own spread are those of clusters,
    and only the part of the noise that rows have by themselves, one in E of it with the design
    effect E, grows with the chances; the rest falls as r^2 does.

    None where fewer than `LEAST_AWAY` rows move, with fewer clusters than that, or where nothing
    can fall so far.
    """
    padded = Padded.of((now - then) / span, clusters)
    if padded is None:
        return None
    if span == 1.0:
        found = design_of(then, now, padded, clusters)
        return None if found is None else found.fall(margin, confidence)
    if min(padded.away, padded.rows) < LEAST_AWAY:
        return None
    t = student_t.two_sided(confidence, padded.freedom)
    t += student_t.quantile(POWER, padded.freedom)
    scale = (padded.rows + added_rows(padded.away)) / padded.rows
    fall = (margin / span + t * padded.error) * scale * span
    return fall if fall > 0.0 else None


def design_of(
    then: Floats, now: Floats, padded: Padded, clusters: Places | None = None
) -> Design | None:
    """Return the design that two sessions of shares are; None where no row differs."""
    centre, product = (mean(then) + mean(now)) / 2.0, mean(then * now)
    if centre <= product:
        return None
    return Design(
        rows=len(now),
        units=padded.rows,
        freedom=padded.freedom,
        away=padded.away,
        variance=padded.variance,
        centre=centre,
        product=product,
        apart=_apart(then, now, centre, clusters),
        effect=padded.effect,
    )


def _apart(then: Floats, now: Floats, centre: float, clusters: Places | None) -> float:
    """Return by how much rows, or clusters, differ in both sessions alike: a variance."""
    groups = _groups(clusters)
    if groups is None:
        return max(0.0, mean(then * now) - centre * centre)
    level = centre * groups.shares * len(groups)
    return max(0.0, mean((groups.sums(then) - level) * (groups.sums(now) - level)))


def _groups(clusters: Places | None) -> Groups | None:
    """Return the clusters; None where each is one value. Loads numpy, as little else here does."""
    if clusters is None:
        return None
    from .clustered import Groups, is_clustered

    return Groups.of(clusters) if is_clustered(clusters) else None
