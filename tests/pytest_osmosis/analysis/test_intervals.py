"""Intervals, held against scipy, published values, and their own coverage by simulation."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy

from pytest_osmosis.analysis.statistics import student_t
from pytest_osmosis.analysis.statistics.estimators import pass_at_k, pass_hat_k
from pytest_osmosis.analysis.statistics.intervals import (
    agresti_coull,
    standard_error,
    t_interval,
    unit_interval,
)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5.5, 9, 30, 99, 999, 4_999, 5_000, 20_000, 1e6, 1e9])
@pytest.mark.parametrize("p", [1e-9, 0.005, 0.025, 0.3, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999])
def test_the_quantile_of_students_t_is_scipys(stats, df, p):
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
def test_the_t_interval_is_scipys(stats, confidence):
    values = np.array([0.1, 0.4, 0.4, 0.9, 1.0, 0.0])
    truth = stats.t.interval(confidence, 5, np.mean(values), stats.sem(values))
    found = t_interval(values, confidence=confidence)
    # SciPy 1.15, the last for Python 3.10, is less precise itself.
    rel = 1e-10 if scipy.__version__.startswith("1.15.") else 1e-12
    assert (found.low, found.high) == pytest.approx(truth, rel=rel)


@pytest.mark.parametrize("rows", [1, 2, 10, 500])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_agresti_coull_is_the_plain_interval_after_more_rows_of_each_kind(stats, rows, confidence):
    z = stats.norm.ppf((1 + confidence) / 2)
    for passes in range(0, rows + 1, max(1, rows // 7)):
        n, share = rows + z**2, (passes + z**2 / 2) / (rows + z**2)
        low, high = stats.norm.interval(confidence, share, math.sqrt(share * (1 - share) / n))
        values = np.repeat([1.0, 0.0], [passes, rows - passes])
        found = unit_interval(values, confidence=confidence)
        assert (found.low, found.high) == pytest.approx((max(0, low), min(1, high)), abs=1e-12)
        assert found.method == "agresti-coull"


def test_agresti_coull_holds_wilsons_interval(stats):
    # Agresti and Coull 1998, and Brown, Cai and DasGupta 2001, Statistical Science 16:101, (6).
    for rows in (5, 20, 300):
        for passes in range(rows + 1):
            wilson = stats.binomtest(passes, rows).proportion_ci(0.95, method="wilson")
            low, high = agresti_coull(passes / rows, rows, stats.norm.ppf(0.975))
            assert low <= wilson.low + 1e-12 and wilson.high <= high + 1e-12


def test_what_is_undefined_is_none():
    assert unit_interval(np.array([])) is None
    assert t_interval(np.array([])) is None
    assert t_interval(np.array([0.3])) is None
    assert t_interval(np.array([0.3, 0.3, 0.3])) is None
    assert standard_error(np.array([0.5])) is None


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.0] * 30, (0.85, 0.9), (1.0, 1.0)),  # all rows alike is not certainty
        ([0.5] * 30, (0.30, 0.34), (0.66, 0.70)),
        ([0.7], (0.0, 0.2), (0.9, 1.0)),
    ],
)
def test_rows_that_are_all_alike_are_not_worth_more_than_they_are(values, low, high):
    found = unit_interval(np.array(values))
    assert low[0] <= found.low <= low[1]
    assert high[0] <= found.high <= high[1]


def test_many_values_in_the_middle_have_the_t_interval():
    values = np.random.default_rng(3).beta(20, 20, size=2000)
    exact, found = t_interval(values), unit_interval(values)
    assert found.method == "agresti-coull (effective rows)"
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-4)


def test_rare_rows_away_from_the_common_end_are_believed_less_the_larger_k_is():
    values = np.repeat([1.0, 0.8], [40, 3])
    widths = [
        interval.high - interval.low
        for interval in (unit_interval(values, k=k) for k in (1, 3, 5, 10))
    ]
    assert widths == sorted(widths) and len(set(widths)) == 4


@pytest.mark.parametrize("df", [1, 4, 40, 4_999, 100_000])
def test_the_tail_of_students_t_is_scipys(stats, df):
    for t in (0.0, 0.3, 1.96, 7.0):
        assert student_t.tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-8)
    assert student_t.tail(1.5, math.inf) == pytest.approx(stats.norm.sf(1.5), rel=1e-12)


def test_numpy_is_not_loaded_with_what_is_read_before_anything_runs():
    code = (
        "from pytest_osmosis.analysis.gates import early_stopping, parser, session_gates;"
        "from pytest_osmosis.analysis import aggregate, baseline, breakdown, metrics; import sys;"
        "from pytest_osmosis.reports import json_models, saved_report, terminal;"
        "from pytest_osmosis.analysis.statistics import intervals, paired, student_t;"
        "print([m for m in ('numpy', 'scipy', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def simulations(rows: int) -> int:
    """Return how often so many rows are drawn; each seed is fixed.

    The standard error of a coverage of 95 % is 0.5 %, and 1 % with 300 rows.
    """
    return min(2_000, 150_000 // rows)


def coverage_of_scores(a: float, b: float, rows: int, times: int) -> float:
    """How often the interval of the mean of one score a row holds the mean of the beta law."""
    drawn = np.random.default_rng(rows).beta(a, b, size=(times, rows))
    return covered([unit_interval(values) for values in drawn], a / (a + b))


def coverage(a: float, b: float, rows: int, n: int, k: int, estimate=pass_at_k) -> float:
    """How often the interval of a pass@k (or pass^k) of beta-binomial rows holds its truth."""
    from scipy import special

    chance = special.betaln(a, b + k) if estimate is pass_at_k else special.betaln(a + k, b)
    chance = math.exp(chance - special.betaln(a, b))
    rng = np.random.default_rng(rows)
    drawn = rng.binomial(n, rng.beta(a, b, size=(simulations(rows), rows)))
    value = np.array([estimate(n, passes, k) for passes in range(n + 1)])
    intervals = [unit_interval(row, k=k) for row in value[drawn]]
    return covered(intervals, 1 - chance if estimate is pass_at_k else chance)


def covered(intervals, truth: float) -> float:
    return sum(found.low <= truth <= found.high for found in intervals) / len(intervals)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(8, 2), (2, 2), (20, 1), (0.5, 0.5), (0.3, 3)])
def test_intervals_cover_nearly_as_often_as_they_say(a, b):
    table = {
        (rows, "mean"): coverage_of_scores(a, b, rows, simulations(rows))
        for rows in (5, 10, 20, 50, 100, 300)
    }
    for rows in (5, 10, 20, 50, 100, 300):
        for n, k in ((5, 1), (5, 3), (5, 5), (8, 3), (8, 5)):
            table[rows, f"pass@{k} of {n}"] = coverage(a, b, rows, n, k)
    assert {cell: share for cell, share in table.items() if share < 0.90} == {}
    assert sum(share >= 0.93 for share in table.values()) >= 0.9 * len(table)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b", "k"), [(2, 2, 3), (8, 2, 3), (8, 2, 5), (0.5, 0.5, 1)])
def test_intervals_of_pass_hat_k_cover_as_often_as_they_say(a, b, k):
    assert coverage(a, b, 50, 8, k, pass_hat_k) >= 0.93


def test_the_mean_of_few_skewed_scores_is_covered():
    assert coverage_of_scores(0.3, 3, 20, 400) >= 0.92
