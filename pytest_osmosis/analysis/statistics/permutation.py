"""Whether chance explains that two samples differ: an exact permutation test, and many at once.

Knows neither rows nor reports.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

_FINE = 10**9
"""Steps between the lowest and the highest score: what differs by rounding alone is equal."""
_MOST_SUMS = 20_000
"""Partial sums that are counted with those steps."""
_BUDGET = 4_000_000
"""Sums times scores that are worth computing with fewer steps."""
_STEPS = 20, 1_000
"""How many steps those may be."""


def permutation_test(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the two-sided p of the difference of means, and the smallest these scores can give.

    All ways to deal the scores to two samples of these sizes are equally likely; p is the share of
    those whose means are at least as far apart (Fisher 1935, The Design of Experiments, 21). For
    scores of 0 and 1 that is Fisher's exact test, by the distance of the shares. No way is drawn at
    random: partial sums are counted.

    Where these are too many (about from 10 scores a side, all different), the scores are rounded to
    20 to 1,000 steps between the lowest and the highest, and the test is the exact one of the
    rounded scores. Where there are too many for that (about from 50 a side, all different), p is
    that of the normal distribution with the variance of the ways.
    """
    low, high = min(*one, *other), max(*one, *other)
    if low == high:
        return 1.0, 1.0
    fine = [_on_grid(side, low, high, _FINE) for side in (one, other)]
    return _test(*map(tuple, map(sorted, fine)))


def stratified_test(
    pairs: Iterable[tuple[Sequence[float], Sequence[float]]],
) -> tuple[float, float]:
    """Return both p, as `permutation_test` does, of the sum of the differences of means of rows.

    Scores are dealt again within each row, all ways of all rows being equally likely: with one run
    a side that passes or fails, the sign test. Where there are too many sums, p is that of the
    normal distribution with the variance of the ways.
    """
    pairs = [(one, other) for one, other in pairs if (*one, *other) and len({*one, *other}) > 1]
    if not pairs:
        return 1.0, 1.0
    scores = [score for one, other in pairs for score in (*one, *other)]
    low, high = min(scores), max(scores)
    rows = [
        (_on_grid(one, low, high, _FINE), _on_grid(other, low, high, _FINE)) for one, other in pairs
    ]
    common = math.lcm(*(len(one) * len(other) for one, other in rows))
    seen = sum(_apart(one, sum(one), other, common) for one, other in rows)
    ways: dict[int, float] = {0: 1.0}
    for one, other in rows:
        own = _ways_apart(one, other, common)
        if own is None or len(ways) * len(own) > _BUDGET // len(rows):
            return _normal_of_rows(rows, seen, common), 0.0
        following: defaultdict[int, float] = defaultdict(float)
        for (sum_of, chance), (apart, share) in product(ways.items(), own.items()):
            following[sum_of + apart] += chance * share
        ways = following
    tolerance = common * len(rows) * 2
    farthest = max(map(abs, ways))
    p, least = (
        min(1.0, sum(ways[found] for found in ways if abs(found) >= far - tolerance))
        for far in (abs(seen), farthest)
    )
    return p, least


def _apart(one: Sequence[int], total: int, other: Sequence[int], common: int) -> int:
    """Return the difference of the means, `one` having this total, times a common multiple."""
    rest = sum(one) + sum(other) - total
    return common // len(one) * total - common // len(other) * rest


def _ways_apart(one: Sequence[int], other: Sequence[int], common: int) -> dict[int, float] | None:
    """Return how likely each difference of a row's means is; None where there are too many."""
    groups = sorted(Counter((*one, *other)).items(), key=lambda group: group[1])
    if math.prod(number + 1 for _, number in groups[:-1]) > _MOST_SUMS:
        return None
    ways = _sums(groups, len(one))
    number = sum(ways.values())
    return {_apart(one, total, other, common): count / number for total, count in ways.items()}


def _normal_of_rows(
    rows: Iterable[tuple[Sequence[int], Sequence[int]]], seen: int, common: int
) -> float:
    variance = 0.0
    for one, other in rows:
        scores = np.array([*one, *other], dtype=float)
        spread = scores.var() * len(scores) / (len(scores) - 1)
        variance += spread * (1.0 / len(one) + 1.0 / len(other))
    return math.erfc(abs(seen) / common / math.sqrt(2.0 * variance))


def discoveries(tests: Iterable[tuple[float, float]], *, rate: float) -> tuple[list[bool], int]:
    """Return which tests are shown at a false discovery rate, and over how many that was decided.

    A test is its p and the smallest p that it could have had. One that could not reach the rate by
    itself is left out (Tarone 1990, Biometrics 46:515; Gilbert 2005, Applied Statistics 54:143);
    over the m that are left, the i smallest are shown, i being the largest with `p_i <= i rate / m`
    (Benjamini and Hochberg 1995, JRSS B 57:289).
    """
    tests = list(tests)
    able = sorted(p for p, least in tests if least <= rate)
    passing = [p for i, p in enumerate(able, 1) if p <= i * rate / len(able)]
    limit = passing[-1] if passing else -1.0
    return [least <= rate and p <= limit for p, least in tests], len(able)


def _on_grid(scores: Iterable[float], low: float, high: float, steps: int) -> list[int]:
    half = high / 2.0 - low / 2.0  # huge scores can be farther apart than floats go
    return [round((score / 2.0 - low / 2.0) / half * steps) for score in scores]


@lru_cache(maxsize=8192)
def _test(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[float, float]:
    """Return both p of scores in steps."""
    groups = sorted(Counter((*one, *other)).items(), key=lambda group: group[1])
    if math.prod(number + 1 for _, number in groups[:-1]) <= _MOST_SUMS:
        return _shares(one, other, _sums(groups, len(one)), (len(one) + len(other)) ** 2)
    size, runs = min(len(one), len(other)), len(one) + len(other)
    steps = min(_BUDGET // (size * size * runs), _STEPS[1])
    if steps < _STEPS[0]:
        return _normal(one, other), 0.0
    few, many = (
        [round(score * steps / _FINE) for score in side] for side in sorted((one, other), key=len)
    )
    return _shares(few, many, _likely_sums([*few, *many], size), 0)


def _shares(
    one: Sequence[int], other: Sequence[int], ways: dict[int, float], tolerance: int
) -> tuple[float, float]:
    """Return the share of the ways that lie as far off as these scores do, and of the farthest."""
    runs, total = len(one) + len(other), sum(one) + sum(other)
    away = {found: abs(found * runs - len(one) * total) for found in ways}
    all_ways, farthest = sum(ways.values()), max(away.values())
    p, least = (
        sum(ways[found] for found in ways if away[found] >= far - tolerance) / all_ways
        for far in (abs(sum(one) * runs - len(one) * total), farthest)
    )
    return min(p, 1.0), min(least, 1.0)


def _sums(groups: Sequence[tuple[int, int]], size: int) -> dict[int, float]:
    """Count the ways to take so many scores of groups of equal ones, by their sum."""
    ways = {(0, 0): 1}
    left = sum(number for _, number in groups)
    for score, number in groups:
        left -= number
        following: Counter[tuple[int, int]] = Counter()
        for (taken, total), count in ways.items():
            for more in range(max(0, size - taken - left), min(number, size - taken) + 1):
                following[taken + more, total + more * score] += count * math.comb(number, more)
        ways = dict(following)
    return {total: count for (_, total), count in ways.items()}


def _likely_sums(scores: Sequence[int], size: int) -> dict[int, float]:
    """Return how likely each sum of so many of the scores is, one score after the other."""
    chances = np.zeros((size + 1, sum(sorted(scores)[-size:]) + 1))
    chances[0, 0] = 1.0
    to_take = size - np.arange(size + 1)
    for seen, score in enumerate(scores):
        take = np.clip(to_take / (len(scores) - seen), 0.0, 1.0)[:, None]
        taken = chances * take
        chances *= 1.0 - take
        chances[1:, score:] += taken[:-1, : taken.shape[1] - score]
    found = chances[size]
    return {int(total): float(found[total]) for total in np.flatnonzero(found)}


def _normal(one: Sequence[int], other: Sequence[int]) -> float:
    scores = np.array([*one, *other], dtype=float)
    away = abs(sum(one) - len(one) * scores.mean())
    variance = len(one) * len(other) / (len(scores) - 1) * scores.var()
    return math.erfc(away / math.sqrt(2.0 * variance))
