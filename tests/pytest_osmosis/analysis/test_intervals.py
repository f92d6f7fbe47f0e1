"""Intervals, held against scipy, published values, and their own coverage by simulation."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy
from scipy import special, stats

from pytest_osmosis.analysis.statistics import bootstrap, student_t
from pytest_osmosis.analysis.statistics.estimators import pass_at_k, pass_hat_k
from pytest_osmosis.analysis.statistics.intervals import (
    Interval,
    bootstrap_interval,
    is_nearly_normal,
    mean_interval,
    pass_interval,
    standard_error,
    t_interval,
    wilson,
    wilson_effective,
)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5.5, 9, 30, 99, 999, 4_999, 5_000, 20_000, 1e6, 1e9])
@pytest.mark.parametrize("p", [1e-9, 0.005, 0.025, 0.3, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999])
def test_the_quantile_of_students_t_is_scipys(df, p):
    assert student_t.quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-10)


def test_the_quantile_of_students_t_is_that_of_the_printed_table():
    printed = {1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
    for df, t in printed.items():
        assert round(student_t.two_sided(0.95, df), 3) == t


def test_the_quantile_of_students_t_is_symmetric_and_refuses_what_is_no_chance():
    assert student_t.quantile(0.5, 3) == 0.0
    assert student_t.quantile(0.1, 3) == -student_t.quantile(0.9, 3)
    for p, df in ((0.0, 3), (1.0, 3), (-1.0, 3), (0.5, 0)):
        with pytest.raises(ValueError):
            student_t.quantile(p, df)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_t_interval_is_scipys(confidence):
    values = [0.1, 0.4, 0.4, 0.9, 1.0, 0.0]
    truth = stats.t.interval(confidence, 5, np.mean(values), stats.sem(values))
    found = t_interval(values, confidence=confidence)
    # SciPy 1.15, the last for Python 3.10, is less precise itself.
    rel = 1e-10 if scipy.__version__.startswith("1.15.") else 1e-12
    assert (found.low, found.high) == pytest.approx(truth, rel=rel)


@pytest.mark.parametrize(
    ("passes", "rows", "low", "high"),
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_limits(passes, rows, low, high):
    found = wilson(passes, rows)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_wilson_is_scipys():
    for rows in (1, 2, 10, 500):
        for passes in range(0, rows + 1, max(1, rows // 7)):
            truth = stats.binomtest(passes, rows).proportion_ci(0.9, method="wilson")
            found = wilson(passes, rows, confidence=0.9)
            assert (found.low, found.high) == pytest.approx((truth.low, truth.high), abs=1e-12)


def test_what_is_undefined_is_none():
    assert mean_interval([]) is None
    assert mean_interval([0.3]) is None
    assert mean_interval([0.3, 0.3, 0.3]) is None
    assert pass_interval([]) is None
    assert wilson(0, 0) is None
    assert bootstrap_interval([0.5, 0.5]) is None
    assert standard_error([0.5]) is None


def test_passes_and_fails_get_wilsons_interval_under_every_metric():
    values = [1.0] * 7 + [0.0] * 3
    assert pass_interval(values) == mean_interval(values) == wilson(7, 10)


def test_all_rows_passing_is_not_certainty():
    found = pass_interval([1.0] * 30)
    assert found.high == 1.0
    assert 0.85 < found.low < 0.9


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([0.0, 1.0] * 150, "wilson"),
        ([0.2, 0.4, 0.8] * 100, "normal"),
        ([1.0] * 280 + [0.4] * 20, "bootstrap-t"),
        ([0.2, 0.4, 0.8] * 10, "bootstrap-t"),
        ([1.0] * 280 + [0.4] * 3, "wilson (effective rows)"),
        ([1.0, 1.0, 0.6], "wilson (effective rows)"),
        ([0.6], "wilson"),
    ],
)
def test_the_method_follows_from_rows_and_skew(values, method):
    assert pass_interval(values).method == method


def test_the_normal_approximation_needs_rows_and_little_skew():
    assert not is_nearly_normal([0.2, 0.8] * 99)
    assert is_nearly_normal([0.2, 0.8] * 100)
    assert not is_nearly_normal([1.0] * 290 + [0.2] * 10)
    assert not is_nearly_normal([0.5] * 1000)


@pytest.mark.parametrize(
    "values", [[0.2, 0.6, 1.0] * 10, list(np.random.default_rng(1).random(300))]
)
def test_the_bootstrap_is_reproducible_and_near_the_truth_it_estimates(values):
    found = bootstrap_interval(values)
    assert found == bootstrap_interval(values)
    assert found != bootstrap_interval(values, seed=1)
    mean = float(np.mean(values))
    assert found.low < mean < found.high
    exact = t_interval(values)
    assert found.high - found.low == pytest.approx(exact.high - exact.low, rel=0.1)


def test_counting_values_and_drawing_rows_are_the_same_bootstrap(monkeypatch):
    values = [0.0, 0.3, 0.3, 0.7, 1.0] * 12
    by_counts = bootstrap.studentised(values).statistics
    monkeypatch.setattr(bootstrap, "FEW_VALUES", 0)
    by_rows = bootstrap.studentised(values).statistics
    assert stats.ks_2samp(by_counts, by_rows).pvalue > 0.01


def test_the_bootstrap_distribution_is_that_of_drawing_rows_by_hand():
    values = np.random.default_rng(5).exponential(size=40)
    pivot = bootstrap.studentised(list(values))
    rng = np.random.default_rng(6)
    drawn = values[rng.integers(0, 40, size=(10_000, 40))]
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(40)
    statistics = (drawn.mean(axis=1) - values.mean()) / errors
    assert stats.ks_2samp(pivot.statistics, statistics).pvalue > 0.01
    assert pivot.error == pytest.approx(stats.sem(values))


@pytest.mark.slow
def test_ten_thousand_resamples_of_ten_thousand_rows_are_drawn_in_chunks_of_the_cache():
    values = list(np.random.default_rng(2).random(10_000))
    started = time.perf_counter()
    found = bootstrap_interval(values, resamples=10_000)
    print(f"10,000 resamples of 10,000 rows: {time.perf_counter() - started:.2f} s")
    exact = t_interval(values)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=3e-4)


def test_numpy_is_not_loaded_with_the_modules():
    code = (
        "from pytest_osmosis.gates import early_stopping, evaluate; import sys;"
        "from pytest_osmosis.analysis import comparison, metrics, score_table;"
        "from pytest_osmosis.analysis.statistics import bootstrap, intervals, student_t;"
        "print([m for m in ('numpy', 'scipy', 'pytest', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def beta_binomial(a: float, b: float, rows: int, n: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return rng.binomial(n, rng.beta(a, b, size=(SIMULATIONS, rows))).tolist()


def covered(intervals: list[Interval], truth: float) -> float:
    return sum(found.low <= truth <= found.high for found in intervals) / len(intervals)


SIMULATIONS = 1_000
"""The standard error of a coverage of 95 % is 0.7 %; the seed is fixed."""


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(2, 2), (8, 2), (0.5, 0.5)])
@pytest.mark.parametrize("rows", [10, 50, 200])
def test_the_interval_of_a_mean_covers_as_often_as_it_says(a, b, rows):
    intervals = [
        mean_interval([passes / 5 for passes in row])
        for row in beta_binomial(a, b, rows, 5, seed=rows)
    ]
    assert 0.93 <= covered(intervals, a / (a + b)) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimate", "a", "b", "rows", "k"),
    [
        (pass_at_k, 2, 2, 20, 3),
        (pass_hat_k, 2, 2, 20, 3),
        (pass_at_k, 2, 2, 50, 1),
        (pass_at_k, 2, 2, 50, 3),
        (pass_at_k, 2, 2, 100, 5),
        (pass_hat_k, 2, 2, 100, 3),
        (pass_at_k, 2, 2, 300, 3),
        (pass_at_k, 8, 2, 50, 1),
        (pass_at_k, 8, 2, 200, 3),
        (pass_hat_k, 8, 2, 50, 3),
        (pass_at_k, 1, 4, 50, 3),
        (pass_hat_k, 1, 4, 200, 3),
        (pass_at_k, 0.5, 0.5, 50, 3),
        (pass_at_k, 0.5, 0.5, 200, 3),
    ],
)
def test_the_interval_of_pass_at_k_covers_as_often_as_it_says(estimate, a, b, rows, k):
    chance = special.betaln(a, b + k) if estimate is pass_at_k else special.betaln(a + k, b)
    chance = math.exp(chance - special.betaln(a, b))
    truth = 1 - chance if estimate is pass_at_k else chance
    intervals = [
        pass_interval([estimate(5, passes, k) for passes in row], resamples=1_000, seed=i)
        for i, row in enumerate(beta_binomial(a, b, rows, 5, seed=k))
    ]
    assert 0.93 <= covered(intervals, truth) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 50, 100, 500])
def test_the_interval_of_single_runs_covers_as_often_as_it_says(rows):
    intervals = [
        pass_interval([float(passes) for passes in row])
        for row in beta_binomial(3, 2, rows, 1, seed=rows)
    ]
    assert 0.93 <= covered(intervals, 0.6) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("rows", [10, 20])
def test_where_resampling_tells_nothing_the_interval_errs_on_the_wide_side(rows):
    truth = 1 - math.exp(special.betaln(8, 2 + 3) - special.betaln(8, 2))
    intervals = [
        pass_interval([pass_at_k(5, passes, 3) for passes in row])
        for row in beta_binomial(8, 2, rows, 5, seed=rows)
    ]
    assert covered(intervals, truth) >= 0.95


def test_effective_rows_are_never_fewer_than_the_rows():
    for values in ([0.0, 1.0, 0.5], [0.9, 1.0, 1.0, 0.1], [0.4, 0.5, 0.6] * 5):
        wide, narrow = wilson(sum(values), len(values)), wilson_effective(values)
        t_over_z = student_t.two_sided(0.95, len(values) - 1) / 1.96
        assert narrow.high - narrow.low <= (wide.high - wide.low) * t_over_z
