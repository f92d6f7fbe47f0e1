"""Estimators, held against exact fractions and published values."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pytest

from pytest_osmosis.analysis.statistics.estimators import (
    mean,
    pass_at_k,
    pass_hat_k,
    population_std,
    reported_ks,
)

MILLION = 10**6


def exact_pass_at_k(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


def exact_pass_hat_k(n: int, c: int, k: int) -> Fraction:
    return Fraction(math.comb(c, k), math.comb(n, k))


def small_cases() -> list[tuple[int, int, int]]:
    return [(n, c, k) for n in range(1, 17) for c in range(n + 1) for k in range(1, n + 1)]


def middling_cases() -> list[tuple[int, int, int]]:
    draw = random.Random(11)
    ns = [draw.randint(17, 2_000) for _ in range(800)]
    return [(n, draw.randint(0, n), draw.randint(1, n)) for n in ns]


def million_cases() -> list[tuple[int, int, int]]:
    draw = random.Random(12)
    cases = []
    for k in (1, 2, 3, 5, 10, 30, 100):
        for _ in range(60):
            few = min(MILLION, int(10 ** draw.uniform(0, 6)))
            cases += [(MILLION, few, k), (MILLION, MILLION - few, k)]
    for _ in range(60):
        few, left = draw.randint(0, 40), draw.randint(0, 40)
        cases += [(MILLION, few, MILLION - left), (MILLION, MILLION - few, MILLION - left)]
    return cases


def is_close(value: float, truth: Fraction) -> bool:
    if truth < Fraction(1, 10**300):
        return math.isclose(value, float(truth), rel_tol=0, abs_tol=5e-324)
    return abs(Fraction(value) - truth) <= truth / 10**12


@pytest.mark.parametrize("cases", [small_cases, middling_cases, million_cases])
def test_pass_at_k_and_pass_hat_k_equal_the_exact_fractions(cases):
    table = cases()
    assert len(table) >= 800
    for n, c, k in table:
        assert is_close(pass_at_k(n, c, k), exact_pass_at_k(n, c, k)), (n, c, k)
        assert is_close(pass_hat_k(n, c, k), exact_pass_hat_k(n, c, k)), (n, c, k)


def test_pass_at_1_is_the_plain_share_of_passes_to_the_last_bit():
    for n in range(1, 60):
        for c in range(n + 1):
            assert pass_at_k(n, c, 1) == pass_hat_k(n, c, 1) == c / n


@pytest.mark.parametrize("c", [0, 1, 999, 500_000, 999_999, MILLION])
@pytest.mark.parametrize("k", [1, 999, 500_000, 999_999, MILLION])
def test_a_million_runs_neither_overflow_nor_leave_the_unit_interval(c, k):
    assert 0.0 <= pass_hat_k(MILLION, c, k) <= c / MILLION <= pass_at_k(MILLION, c, k) <= 1.0


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0), (0, 0, 1)])
def test_numbers_that_cannot_be_are_refused(function, n, c, k):
    with pytest.raises(ValueError, match="between"):
        function(n, c, k)


@pytest.mark.parametrize(
    ("n", "ks"),
    [(1, ()), (2, (1, 2)), (3, (1, 3)), (5, (1, 3, 5)), (7, (1, 3, 5, 7)), (10, (1, 3, 5, 10))],
)
def test_the_reported_ks_are_1_3_5_10_and_n_as_far_as_they_go(n, ks):
    assert reported_ks(n) == ks


def test_mean_and_deviation_are_those_of_the_statistics_module():
    draw = random.Random(3)
    for _ in range(50):
        scores = np.array([draw.gauss(0.4, 2.0) for _ in range(draw.randint(1, 40))])
        assert mean(scores) == pytest.approx(statistics.fmean(scores), rel=1e-14)
        std = pytest.approx(statistics.pstdev(scores), rel=1e-12, abs=1e-15)
        assert population_std(scores) == std


def test_equal_scores_have_no_spread_and_their_own_mean():
    for score in (0.1, 1 / 3, 0.7, 1e-300, 1e300):
        assert (mean(np.full(7, score)), population_std(np.full(7, score))) == (score, 0.0)


def test_the_mean_does_not_lose_small_scores_beside_huge_ones():
    assert mean(np.array([1e16, 1.0, -1e16])) == 1 / 3


def test_huge_scores_stay_finite():
    huge = np.array([1.7e308, -1.7e308, 1.7e308])
    assert math.isfinite(mean(huge))
    assert population_std(huge) == pytest.approx(1.7e308 * (math.sqrt(8) / 3))


def test_nothing_counts_as_zero():
    assert mean(np.array([])) == 0.0
    assert population_std(np.array([])) == 0.0
