"""Verdicts on simulated pairs of sessions: wrong as seldom as they say, and not blind."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from benchmarks.verdicts import PLANS, Cell, planned_rows, session_of, simulate, simulate_plan
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.verdicts import POINT_ESTIMATES

PAIRS = 600


def spread(share: float) -> float:
    """Three standard errors of a share of the pairs."""
    return 3.0 * (share * (1.0 - share) / PAIRS) ** 0.5


def test_of_all_pairs_of_sixteen_sessions_of_one_agent_few_fail():
    draw = np.random.default_rng(28)
    planned, chances = planned_rows(20), draw.beta(8, 2, size=20)
    sessions = [session_of(draw, planned, chances, 5) for _ in range(16)]
    gate = parse_gate("mean - baseline >= -0.02")

    def failed(**settings):
        pairs = permutations(sessions, 2)
        results = [evaluate(gate, later, baseline=first, **settings) for first, later in pairs]
        return sum(result.outcome == "failed" for result in results) / len(results)

    assert failed() <= 0.03
    assert failed(confidence=POINT_ESTIMATES) >= 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "rows", "n"),
    [((8, 2), 20, 5), ((2, 2), 10, 1), ((20, 1), 50, 3), ((0.5, 0.5), 20, 3), ((0.3, 3), 50, 5)],
)
def test_one_agent_twice_seldom_fails_and_a_worse_one_is_found(law, rows, n):
    found: Cell = simulate(law, rows, n, pairs=PAIRS)
    assert found.failed / PAIRS <= 0.035 + spread(0.025)
    assert found.regressed / PAIRS <= 0.1
    assert rows < 20 or found.covered / PAIRS >= 0.93 - spread(0.95)
    if found.promises >= PAIRS / 3:
        assert 0.75 - spread(0.8) <= found.shown / found.promises <= 0.85 + spread(0.8)


@pytest.mark.slow
@pytest.mark.parametrize(("rates", "rows", "n"), PLANS)
def test_the_fall_that_a_plan_names_is_found(rates, rows, n):
    found = simulate_plan(rates, rows, n, pairs=PAIRS)
    assert 0.75 - spread(0.8) <= found.shown / PAIRS <= 0.85 + spread(0.8)


@pytest.mark.slow
def test_the_fall_that_is_promised_of_an_agent_that_is_nearly_always_right_is_not_too_large():
    found = simulate((20, 1), 50, 5, pairs=3 * PAIRS)
    assert found.promises >= 0.85 * found.pairs
    assert 0.75 <= found.shown / found.promises <= 0.85
