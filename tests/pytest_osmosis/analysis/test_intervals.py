"""Intervals, held against scipy, published values, and their own coverage by simulation."""

from __future__ import annotations

import math
import subprocess
import sys
from statistics import NormalDist

import numpy as np
import pytest

from pytest_osmosis.analysis.statistics import student_t
from pytest_osmosis.analysis.statistics.estimators import pass_at_k, pass_hat_k
from pytest_osmosis.analysis.statistics.intervals import (
    agresti_coull,
    standard_error,
    t_interval,
    unit_interval,
)

SCIPYS = {
    1: (-318309886.1837907, -0.7265425280053609, 12.706204736174694, 0.15017144588801656),
    2: (-22360.679741456875, -0.6172133998483678, 4.302652729749462, 0.09452865480086614),
    5.5: (-72.93110951730732, -0.5561204847180871, 2.501858617589239, 0.051030812341234306),
    30: (-8.445862796274243, -0.5300190039065046, 2.0422724563012378, 0.029671156448025246),
    4_999: (-6.008914929633537, -0.5244339515206755, 1.9604386466615247, 0.025025631693643684),
    1e6: (-5.997862455710896, -0.5244006798602092, 1.959966356814107, 0.024998033792634926),
}
"""By degrees of freedom, of `scipy.stats.t` 1.17.1: `ppf` of 1e-9, 0.3, 0.975, and `sf` of 1.96."""


@pytest.mark.parametrize("df", SCIPYS)
def test_the_quantiles_and_tails_of_students_t_are_those_of_a_table(df):
    *quantiles, tail = SCIPYS[df]
    found = [student_t.quantile(p, df) for p in (1e-9, 0.3, 0.975)]
    assert found == pytest.approx(quantiles, rel=1e-10)
    assert student_t.tail(1.96, df) == pytest.approx(tail, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("df", [1, 2, 3, 4, 5.5, 9, 30, 99, 999, 4_999, 5_000, 20_000, 1e6, 1e9])
def test_the_quantiles_and_tails_of_students_t_are_scipys(stats, df):
    for p in (1e-9, 0.005, 0.025, 0.3, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
        assert student_t.quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-10)
    for t in (0.0, 0.3, 1.96, 7.0):
        rel = 1e-8 if df < 1e9 else 1e-6  # ours has six digits there
        assert student_t.tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=rel)


def test_the_quantile_of_students_t_is_symmetric_and_refuses_what_is_no_chance():
    assert student_t.quantile(0.5, 3) == 0.0
    assert student_t.quantile(0.1, 3) == -student_t.quantile(0.9, 3)
    for p, df in ((0.0, 3), (1.0, 3), (-1.0, 3), (0.5, 0)):
        with pytest.raises(ValueError):
            student_t.quantile(p, df)


@pytest.mark.parametrize(
    ("confidence", "limits"),
    [
        (0.8, (0.22068599186258633, 0.7126473414707469)),
        (0.95, (0.038236360727280816, 0.8950969726060525)),
        (0.99, (-0.2053571639258714, 1.1386904972592047)),
    ],
)
def test_the_t_interval_is_scipys(confidence, limits):
    found = t_interval(np.array([0.1, 0.4, 0.4, 0.9, 1.0, 0.0]), confidence=confidence)
    assert (found.low, found.high) == pytest.approx(limits, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 10, 500])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_agresti_coull_is_the_plain_interval_after_more_rows_of_each_kind(rows, confidence):
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    for passes in range(0, rows + 1, max(1, rows // 7)):
        n, share = rows + z**2, (passes + z**2 / 2) / (rows + z**2)
        half = z * math.sqrt(share * (1 - share) / n)
        values = np.repeat([1.0, 0.0], [passes, rows - passes])
        found = unit_interval(values, confidence=confidence)
        assert (found.low, found.high) == pytest.approx(
            (max(0, share - half), min(1, share + half)), abs=1e-12
        )
        assert found.method == "agresti-coull"


def test_agresti_coull_holds_wilsons_interval():
    # Agresti and Coull 1998; Brown, Cai and DasGupta 2001, Statistical Science 16:101, (4), (6).
    z = NormalDist().inv_cdf(0.975)
    for rows in (5, 20, 300):
        for passes in range(rows + 1):
            p = passes / rows
            centre = (passes + z**2 / 2) / (rows + z**2)
            half = z * math.sqrt(rows) / (rows + z**2) * math.sqrt(p * (1 - p) + z**2 / (4 * rows))
            low, high = agresti_coull(p, rows, z)
            assert low <= centre - half + 1e-12 and centre + half <= high + 1e-12


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


def test_of_endless_degrees_of_freedom_the_tail_is_that_of_the_normal_law():
    assert student_t.tail(1.5, math.inf) == pytest.approx(NormalDist().cdf(-1.5), rel=1e-12)


@pytest.mark.slow
def test_numpy_is_not_loaded_with_what_is_read_before_anything_runs():
    code = (
        "from pytest_osmosis.analysis.gates import parser;"
        "from pytest_osmosis.features.early_stopping import stopping;"
        "from pytest_osmosis.analysis import aggregate, metrics; import sys;"
        "from pytest_osmosis.reports import json_models, saved_report, summary;"
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
