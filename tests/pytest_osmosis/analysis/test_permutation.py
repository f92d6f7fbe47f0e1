"""The exact permutation test, against a count of every way, Fisher's exact test and scipy."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.analysis.statistics import permutation
from pytest_osmosis.analysis.statistics.permutation import discoveries, permutation_test

SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=5)


def every_way(one, other):
    """Both p, by a count of all ways to deal the scores; in whole numbers."""
    scores, size = [*one, *other], len(one)
    far = sorted(
        abs(sum(dealt) * len(scores) - size * sum(scores)) for dealt in combinations(scores, size)
    )
    seen = abs(sum(one) * len(scores) - size * sum(scores))
    return tuple(sum(each >= limit for each in far) / len(far) for limit in (seen, far[-1]))


@given(SCORES, SCORES)
def test_it_is_the_share_of_all_ways_whose_means_are_as_far_apart(one, other):
    assert permutation_test(one, other) == pytest.approx(every_way(one, other))


@given(SCORES, SCORES)
def test_neither_the_order_nor_the_scale_nor_the_side_matters(one, other):
    found = permutation_test(one, other)
    assert permutation_test(other, one[::-1]) == pytest.approx(found)
    assert permutation_test([0.1 * x for x in one], [0.1 * x for x in other]) == found


@pytest.mark.parametrize("n", [3, 5, 40, 1_000])
def test_of_passes_and_fails_it_is_fishers_exact_test(n):
    draw = random.Random(n)
    for _ in range(5):
        one, other = (draw.randint(0, n) for _ in range(2))
        passes = one + other
        ways = [comb(n, share) * comb(n, passes - share) for share in range(passes + 1)]
        truth = sum(way for way in ways if way <= ways[one]) / sum(ways)
        sides = ([1.0] * passed + [0.0] * (n - passed) for passed in (one, other))
        assert permutation_test(*sides)[0] == pytest.approx(truth)


@pytest.mark.slow
@pytest.mark.parametrize("n", [9, 20, 60])
def test_of_many_different_scores_it_is_near_what_drawing_ways_gives(stats, n):
    draw = random.Random(n)
    one, other = ([draw.gauss(shift, 1.0) for _ in range(n)] for shift in (0.0, 0.6))
    truth = stats.permutation_test(
        (one, other),
        lambda one, other, axis: one.mean(axis) - other.mean(axis),
        n_resamples=40_000, vectorized=True, random_state=1,
    )  # fmt: skip
    assert permutation_test(one, other)[0] == pytest.approx(truth.pvalue, abs=0.01)


def test_scores_rounded_to_steps_give_nearly_the_p_of_those_that_are_not(monkeypatch):
    draw = random.Random(4)
    one, other = ([draw.random() + shift for _ in range(7)] for shift in (0.0, 0.3))
    exact = permutation_test(one, other)
    monkeypatch.setattr(permutation, "_MOST_SUMS", 0)
    permutation._test.cache_clear()
    assert permutation_test(one, other) == pytest.approx(exact, abs=0.01)
    permutation._test.cache_clear()


def test_rows_that_could_show_nothing_do_not_count():
    hopeless, sure, weak = (1.0, 1.0), (0.008, 0.008), (0.09, 0.008)
    assert discoveries([hopeless] * 50 + [sure], rate=0.1) == ([False] * 50 + [True], 1)
    assert discoveries([sure, weak, weak], rate=0.1) == ([True] * 3, 3)
    for others, is_shown in ((11, True), (12, False)):  # 0.008 lies between 0.1 / 13 and 0.1 / 12
        found, able = discoveries([sure] + [(0.5, 0.008)] * others, rate=0.1)
        assert (found[0], any(found[1:]), able) == (is_shown, False, others + 1)
    assert discoveries([], rate=0.1) == ([], 0)
