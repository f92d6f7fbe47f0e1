"""Percentiles: their limits against binomial chances, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.percentiles import simulate
from pytest_osmosis.analysis.statistics.order import fewest_rows, nearest_rank, percentile_limits


def _below(n: int, p: float, count: int) -> float:
    """The chance that fewer than `count` of n independent values lie at or below."""
    return math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count))


@pytest.mark.parametrize("n", [1, 5, 20, 73, 200])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.95, 0.99])
def test_limits_of_one_run_a_row_are_the_exact_order_statistics(n: int, p: float):
    found = percentile_limits(np.arange(1.0, n + 1).reshape(-1, 1), p)
    low = max((rank for rank in range(1, n + 1) if _below(n, p, rank) <= 0.025), default=-math.inf)
    above = (rank for rank in range(1, n + 1) if 1 - _below(n, p, rank) <= 0.025)
    assert found is not None
    assert (found.low, found.high) == (low, min(above, default=math.inf))
    assert math.isfinite(found.high - found.low) == (n >= fewest_rows(p, 0.95))


def test_the_percentile_is_the_one_of_nearest_rank():
    rising = np.arange(1.0, 21)
    assert [nearest_rank(rising, p) for p in (0.5, 0.9, 0.95, 0.99)] == [10, 18, 19, 20]


def test_runs_that_repeat_their_row_are_worth_no_more_than_it():
    rows = np.arange(1.0, 101).reshape(-1, 1)
    assert percentile_limits(np.repeat(rows, 5, axis=1), 0.9) == percentile_limits(rows, 0.9)
    clusters = np.repeat(np.arange(4), 25)
    assert percentile_limits(rows, 0.9, clusters=clusters) is None


@pytest.mark.parametrize("law", ["exponential", "log-normal", "tied"])
@pytest.mark.parametrize("n", [1, 5])
def test_the_limits_hold_the_truth(law: str, n: int):
    assert simulate(law, 100, n, 0.9, sessions=400).covered >= 0.93 * 400
