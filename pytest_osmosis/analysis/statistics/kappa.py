"""Cohen's kappa: how far two raters agree beyond what chance would give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...verdicts import Interval
from . import student_t


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree."""

    observed: float
    """The share of subjects that both put into the same category."""
    kappa: float | None
    """(observed - expected) / (1 - expected); None where chance alone would agree on all."""
    interval: Interval | None
    """None where kappa is, and where its standard error is 0: too little is known for one."""


def cohens_kappa(table: Sequence[Sequence[int]], *, confidence: float = 0.95) -> Agreement | None:
    """Return the agreement of a square table of counts, a row for each category of one rater.

    Cohen 1960, Educational and Psychological Measurement 20:37; the interval is kappa -+ z s with
    the large-sample standard error s of Fleiss, Cohen and Everitt 1969, Psychological Bulletin
    72:323, cut at -1 and 1. None without subjects.
    """
    total = sum(map(sum, table))
    if not total:
        return None
    p = [[count / total for count in row] for row in table]
    rows = [sum(row) for row in p]
    columns = [sum(column) for column in zip(*p, strict=True)]
    places = range(len(p))
    observed = sum(p[i][i] for i in places)
    expected = sum(rows[i] * columns[i] for i in places)
    if math.isclose(expected, 1.0):
        return Agreement(observed, None, None)
    kappa = (observed - expected) / (1.0 - expected)
    rest = 1.0 - kappa
    spread = sum(p[i][i] * (1.0 - (rows[i] + columns[i]) * rest) ** 2 for i in places)
    spread += rest**2 * sum(
        p[i][j] * (columns[i] + rows[j]) ** 2 for i in places for j in places if i != j
    )
    spread -= (kappa - expected * rest) ** 2
    error = math.sqrt(max(0.0, spread) / total) / (1.0 - expected)
    if error < 1e-9:
        return Agreement(observed, kappa, None)
    reach = student_t.two_sided(confidence, math.inf) * error
    interval = Interval(max(-1.0, kappa - reach), min(1.0, kappa + reach), "kappa", confidence)
    return Agreement(observed, kappa, interval)
