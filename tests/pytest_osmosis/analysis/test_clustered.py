"""Intervals and differences of rows in clusters, held against formulas, other code and chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_osmosis.analysis.statistics import student_t
from pytest_osmosis.analysis.statistics.clustered import Groups, cluster_interval, is_clustered
from pytest_osmosis.analysis.statistics.intervals import (
    standard_error,
    t_interval,
    unit_interval,
)
from pytest_osmosis.analysis.statistics.paired import paired, smallest_fall
from pytest_osmosis.analysis.statistics.permutation import permutation_test, stratified_test

UNEQUAL = np.repeat(np.arange(7), [1, 2, 3, 5, 8, 13, 21])


def by_matrices(values, clusters):
    """The CR2 error and its degrees of freedom as Bell and McCaffrey define them, by matrices."""
    rows = len(values)
    annihilator = np.eye(rows) - 1.0 / rows
    parts = []
    for number in np.unique(clusters):
        own = clusters == number
        kept = annihilator[np.ix_(own, own)]
        values_of, vectors = np.linalg.eigh(kept)
        root = vectors @ np.diag(values_of**-0.5) @ vectors.T
        parts.append(annihilator[:, own] @ root @ np.ones(own.sum()) / rows)
    parts = np.array(parts)
    products = parts @ parts.T
    error = math.sqrt(((parts @ values) ** 2).sum())
    return error, np.trace(products) ** 2 / (products**2).sum()


@pytest.mark.parametrize("clusters", [UNEQUAL, np.repeat(np.arange(6), 4), np.arange(9)])
def test_error_and_degrees_of_freedom_are_those_of_bell_and_mccaffrey(clusters):
    values = np.random.default_rng(4).normal(size=len(clusters))
    groups = Groups.of(clusters)
    error, freedom = by_matrices(values, clusters)
    assert groups.error(values) == pytest.approx(error, rel=1e-9)
    assert groups.freedom == pytest.approx(freedom, rel=1e-9)


def test_of_clusters_of_one_size_the_interval_is_students_of_their_means():
    means = np.array([0.1, 0.4, 0.4, 0.9, 1.7, -0.3])
    values, clusters = np.repeat(means, 5), np.repeat(np.arange(6), 5)
    found, plain = cluster_interval(values, clusters), t_interval(means)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert Groups.of(clusters).freedom == pytest.approx(5.0)
    assert Groups.of(clusters).error(values) == pytest.approx(standard_error(means))


def test_four_of_six_documents_say_as_much_as_six_rows():
    values = np.repeat([1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 20)
    found = cluster_interval(values, np.repeat(np.arange(6), 20), k=1)
    reach = student_t.two_sided(0.95, 5) * math.sqrt(2 / 9 / 5)
    assert (found.low, found.high) == pytest.approx((2 / 3 - reach, 1.0))
    assert found.method == "agresti-coull (clusters)"


def test_where_nothing_differs_an_interval_remains_and_with_four_clusters_there_is_none():
    ones = np.ones(60)
    assert 0.4 < cluster_interval(ones, np.repeat(np.arange(6), 10), k=1).low < 0.7
    assert cluster_interval(ones, np.repeat(np.arange(4), 15), k=1) is None
    assert cluster_interval(ones, np.repeat(np.arange(6), 10)) is None
    assert paired(ones, clusters=np.repeat(np.arange(4), 15)).interval is None


def test_rows_that_are_clusters_by_themselves_are_as_without():
    moved = np.random.default_rng(2).choice([-1.0, 0.0, 0.0, 1.0], 150)
    alone = np.arange(150)[::-1]
    assert not is_clustered(alone)
    assert paired(moved, clusters=alone) == paired(moved)
    then, now = (moved < 0) * 1.0, (moved > 0) * 1.0
    falls = [smallest_fall(then, now, margin=0, confidence=0.95, clusters=each)
             for each in (None, alone)]  # fmt: skip
    assert falls[0] == falls[1] is not None


def test_one_row_more_of_a_cluster_hardly_changes_anything():
    moved = np.random.default_rng(2).choice([-1.0, 0.0, 0.0, 1.0], 200)
    nearly = np.array([0, *range(199)])
    found, plain = paired(moved, clusters=nearly), paired(moved)
    assert found.interval.low == pytest.approx(plain.interval.low, abs=0.01)
    assert found.p == pytest.approx(plain.p, abs=0.05)


def test_interval_and_p_agree_whatever_the_confidence():
    draw = np.random.default_rng(5)
    for _ in range(50):
        moved = draw.choice([-1.0, 0.0, 1.0], len(UNEQUAL), p=[0.5, 0.3, 0.2])
        found = paired(moved, confidence=0.9, clusters=UNEQUAL)
        assert (found.p <= 0.1) == (not found.interval.low <= 0.0 <= found.interval.high)


def test_huge_scores_have_a_finite_interval():
    values = np.repeat([1e300, -1e300, 1e308, 0.0, 5.0, 1e307], 3)
    found = cluster_interval(values, np.repeat(np.arange(6), 3))
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)


# ---- by chance

DRAWS = 400


def draws(seed, size, icc, rate):
    """Scores of sessions, a row each, with chances of clusters that are drawn anew in each."""
    draw, (number, rows) = np.random.default_rng(seed), size
    chances = np.full((DRAWS, number), rate)
    if icc:
        chances = draw.beta(rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc, chances.shape)
    return (draw.random((DRAWS, number * rows)) < np.repeat(chances, rows, axis=1)) * 1.0


def beyond(share):
    return 3.0 * math.sqrt(share * (1.0 - share) / DRAWS)


SIZES = [(6, 20), (20, 20), (40, 5)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("icc", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("rate", [0.7, 0.9])
def test_intervals_hold_the_truth_whatever_the_correlation(size, icc, rate):
    clusters = np.repeat(np.arange(size[0]), size[1])
    found = [cluster_interval(each, clusters, k=1) for each in draws(7, size, icc, rate)]
    held = sum(each.low <= rate <= each.high for each in found) / DRAWS
    assert held >= 0.93 - beyond(0.95) / 2


def test_intervals_of_rows_do_not():
    found = [unit_interval(each) for each in draws(7, (20, 20), 0.4, 0.7)]
    assert sum(each.low <= 0.7 <= each.high for each in found) / DRAWS < 0.6


@pytest.mark.parametrize(
    ("size", "icc", "rate"),
    [((6, 20), 0.4, 0.7), ((20, 20), 0.0, 0.9), ((20, 20), 0.2, 0.7), ((40, 5), 0.4, 0.7)],
)
def test_an_unchanged_agent_seldom_seems_worse_and_the_named_fall_is_found(size, icc, rate):
    clusters = np.repeat(np.arange(size[0]), size[1])
    then, now, again = (draws(seed, size, icc, rate) for seed in (1, 2, 3))
    falls = [
        smallest_fall(*pair, margin=0.0, confidence=0.95, clusters=clusters)
        for pair in zip(then, now, strict=True)
    ]
    same = [paired(each, clusters=clusters).interval for each in now - then]
    assert sum(each.high < 0.0 for each in same) / DRAWS <= 0.025 + beyond(0.025)
    assert sum(each.low <= 0.0 <= each.high for each in same) / DRAWS >= 0.93 - beyond(0.95) / 2
    kept = np.random.default_rng(4).random(now.shape)
    shown = [
        paired(after * (luck < 1.0 - fall / rate) - before, clusters=clusters).interval.high < 0.0
        for before, after, luck, fall in zip(
            again, draws(5, size, icc, rate), kept, falls, strict=True
        )
        if fall is not None
    ]
    assert size[0] < 10 or len(shown) > 0.9 * DRAWS
    if shown:
        assert 0.75 - beyond(0.8) / 2 <= sum(shown) / len(shown) <= 0.85 + beyond(0.8) / 2


# ---- changed clusters


def test_the_test_of_one_row_is_the_permutation_test():
    now, then = [1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]
    assert stratified_test([(now, then)]) == pytest.approx(permutation_test(now, then))


@pytest.mark.parametrize(("fell", "rose"), [(9, 0), (7, 2), (5, 5), (1, 0)])
def test_with_one_run_a_row_it_is_the_sign_test(fell, rose):
    pairs = [([0.0], [1.0])] * fell + [([1.0], [0.0])] * rose + [([1.0], [1.0])] * 4
    number = fell + rose
    exact = sum(
        math.comb(number, of) for of in range(number + 1) if abs(2 * of - number) >= fell - rose
    )
    assert stratified_test(pairs) == pytest.approx((exact / 2**number, 2 / 2**number))


def test_rows_of_other_numbers_of_runs_are_dealt_within_each():
    pairs = [([0.0, 0.5], [1.0]), ([0.25], [0.5, 1.0, 0.75])]
    means = [
        {a / 1 - (b + c) / 2 for a, b, c in ((1, 0, 0.5), (0.5, 0, 1), (0, 0.5, 1))},
        {(2.5 - a) / 3 - a for a in (0.25, 0.5, 1.0, 0.75)},
    ]
    sums = [one + other for one in means[0] for other in means[1]]
    seen = 1 - 0.25 + 0.75 - 0.25
    exact = sum(abs(each) >= abs(seen) - 1e-9 for each in sums) / len(sums)
    assert stratified_test(pairs)[0] == pytest.approx(exact)


def test_too_many_sums_are_compared_with_the_normal_distribution():
    draw = np.random.default_rng(1)
    sides = [(draw.normal(size=12), draw.normal(0.8, size=12)) for _ in range(8)]
    p, least = stratified_test([(now.tolist(), then.tolist()) for now, then in sides])
    assert least == 0.0
    assert p < 0.01
    assert stratified_test([([1.0], [1.0])]) == (1.0, 1.0)
