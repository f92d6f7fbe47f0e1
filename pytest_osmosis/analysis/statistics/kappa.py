"""Cohen's kappa: how far two raters agree beyond what chance would give."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from ...verdicts import Interval
from . import student_t

_ADDED = 0.5
"""How much of a subject is added to each of the four cells for an interval."""


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


def kappa_in_units(
    pairs: Collection[tuple[bool, bool, Hashable]], *, confidence: float = 0.95
) -> Agreement | None:
    """Return the agreement of two raters over subjects in units, such as runs in rows.

    Each pair is what either rater says, and the unit. The interval is `m -+ t e` with the
    influence of each unit on kappa as its error (what cohens_kappa's is without units), t on their
    number minus one, and half a subject in each cell, so that a few that agree do not make it
    certain. None without subjects; no interval of a single unit.
    """
    counts = Counter((one, other) for one, other, _ in pairs)
    found = cohens_kappa(_square(counts))
    units = len({unit for _, _, unit in pairs})
    if found is None or found.kappa is None or units < 2:
        return found and replace(found, interval=None)
    cells = {cell: counts[cell] + _ADDED for cell in _CELLS}
    total = sum(cells.values())
    of_one = {side: sum(cells[side, other] for other in _SIDES) / total for side in _SIDES}
    of_other = {side: sum(cells[one, side] for one in _SIDES) / total for side in _SIDES}
    observed = sum(cells[side, side] for side in _SIDES) / total
    expected = sum(of_one[side] * of_other[side] for side in _SIDES)
    rest = 1.0 - expected

    def influence(one: bool, other: bool) -> float:
        moved = of_other[one] + of_one[other] - 2.0 * expected
        return (((one == other) - observed) * rest - (1.0 - observed) * moved) / rest**2

    sums: defaultdict[Hashable, float] = defaultdict(float)
    for one, other, unit in pairs:
        sums[unit] += influence(one, other)
    squares = math.fsum(each**2 for each in sums.values()) * units / (units - 1)
    squares += _ADDED * sum(influence(*cell) ** 2 for cell in _CELLS)
    reach = student_t.two_sided(confidence, units - 1) * math.sqrt(squares) / total
    kappa = (observed - expected) / rest
    low, high = max(-1.0, kappa - reach), min(1.0, kappa + reach)
    limits = min(low, found.kappa), max(high, found.kappa)
    return replace(found, interval=Interval(*limits, "kappa", confidence))


_SIDES = (True, False)
_CELLS = tuple((one, other) for one in _SIDES for other in _SIDES)


def _square(counts: Counter[tuple[bool, bool]]) -> list[list[int]]:
    return [[counts[one, other] for other in _SIDES] for one in _SIDES]
