"""Stopping early: never with another verdict than a full run's."""

from __future__ import annotations

import cProfile
import pstats
import random
import time
from dataclasses import replace
from statistics import median

import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.names import Gate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.metrics import CASES, METRICS, Bounds, Definition, Metric
from pytest_osmosis.features.early_stopping.stopping import SuiteGates
from tests.support.random_suites import Suite, outcomes, random_gate, suites
from tests.support.score_tables import empty_table, run_of


@pytest.mark.slow
def test_on_200_random_suites_the_verdicts_are_those_of_a_full_run():
    saved = total = 0
    seen = set()
    for draw, suite in suites(200, seed=1):
        gates = [random_gate(draw, suite.n) for _ in range(draw.randint(1, 2))]
        stopped, followed = suite.until_decided(gates)
        verdicts = outcomes(gates, stopped)
        assert verdicts == outcomes(gates, suite.full()), gates
        saved, total = saved + followed.left, total + len(suite.order)
        seen.update(verdicts)
    print(f"saved {saved} of {total} runs ({saved / total:.0%})")
    assert saved > 0.2 * total
    assert seen == {"passed", "failed", "inconclusive"}


def test_every_single_gate_keeps_its_verdict_wherever_it_stops():
    draw = random.Random(9)
    for _ in range(150):
        suite = Suite(draw, rows=draw.randint(1, 6), n=draw.randint(1, 3))
        gates = [random_gate(draw, suite.n)]
        stopped, _ = suite.until_decided(gates)
        assert outcomes(gates, stopped) == outcomes(gates, suite.full()), gates


def stops_after(gate: str | Gate, scores, *, rows=None) -> int | None:
    """How many runs it takes; None when all of them do not decide it before the last."""
    gates = [parse_gate(gate) if isinstance(gate, str) else gate]
    followed = SuiteGates(gates, empty_table(rows or len(scores)))
    for ended, score in enumerate([*scores, None]):
        if followed.are_settled():
            return ended
        followed.add(run_of(ended, 0, {"f": score}))
    return None


@pytest.mark.parametrize(
    ("text", "scores", "after"),
    [
        ("mean >= 0.5", [1.0] * 10, 5),
        ("mean > 0.5", [1.0] * 10, 6),
        ("mean >= 0.5", [0.0] * 10, 6),
        ("mean < 0.5", [1.0] * 10, 5),
        ("pass@1 == 0.5", [1.0] * 10, 6),
        ("mean == 0.5", [0.5] * 3 + [1.0], 4),
        ("mean == 0.5", [1.0, 1.0, 1.0, 0.0], 3),
        ("pass@1 == 0.5", [1.0, 0.0] * 5, 10),
        ("errors == 0", [1.0, None, 1.0, 1.0], 2),
        ("errors == 0", [1.0] * 4, 4),
        ("scored >= 0.5", [1.0] * 4, 2),
        ("rows@0 == 0", [1.0, 0.0, 1.0, 1.0], 2),
        ("each row >= 1/2", [1.0, 0.0, 1.0, 1.0], 2),
        ("each row >= 1/2", [1.0] * 4, 4),
        ("min >= 0.5", [1.0, 0.0, 1.0, 1.0], 2),
        ("mean >= 0.95", [None] * 2 + [1.0] * 8, 10),
        ("mean >= 0.5", [None] * 6 + [0.0] * 4, 10),
        ("mean >= 0.5", [None] * 6 + [1.0] * 4, 10),
    ],
)
def test_it_stops_at_the_first_run_that_settles_the_gate(text, scores, after):
    assert stops_after(text, scores) == after


def test_a_gate_that_stays_inconclusive_is_open_to_the_end():
    # 4 of 10 are unknown: the bounds end in 0.6 and 1.0.
    assert stops_after("mean >= 0.8", [None] * 4 + [1.0] * 6) == 10


def test_scores_outside_the_unit_interval_leave_a_mean_open_to_the_end():
    assert stops_after("mean >= 0.5", [3.0] * 10) == 10
    assert stops_after("min >= 0.5", [3.0, -1.0, 3.0]) == 2


def median_of_runs(table, eval_fn) -> Bounds:
    """The median of all scores: made of the whole table, not of rows."""
    cases = (table.row_scores(eval_fn, case).of_runs.tolist() for case in CASES)
    return Bounds(*(median(scores or [0.0]) for scores in cases), unknown=0)


def test_scores_outside_the_unit_interval_leave_a_metric_of_the_whole_table_open(monkeypatch):
    further = Definition(
        name="median", field="median", of_table=median_of_runs, unit_scores=True, is_share=False
    )
    monkeypatch.setitem(METRICS, "median", further)
    gate = replace(parse_gate("mean <= 4"), metric=Metric("median"))
    assert stops_after(gate, [1.0] * 10) == 0, "nothing above 1 is looked for"
    assert stops_after(replace(gate, threshold=0.5), [1.0] * 10) == 6
    table = empty_table(10)
    table.record([run_of(0, 0, {"f": 3.0})])
    followed = SuiteGates([gate], table)
    assert not followed.are_settled(), "nine scores may be 9"
    for row in range(1, 10):
        followed.add(run_of(row, 0, {"f": 9.0}))
    assert followed.are_settled()
    assert evaluate(gate, table).outcome == "failed"


def test_sums_are_settled_once_they_are_over():
    followed = SuiteGates([parse_gate("tokens <= 100")], empty_table(10))
    for row in range(3):
        assert not followed.are_settled()
        followed.add(run_of(row, 0, {"f": 1.0}, tokens=50, cost_usd=0.1, duration_ms=1000))
    assert followed.are_settled()
    assert followed.left == 7


def test_runs_that_a_table_holds_are_taken_in():
    gates = [parse_gate("mean >= 0.5")]
    assert not SuiteGates(gates, empty_table(4)).are_settled()
    table = empty_table(4)
    table.record(run_of(row, 0, {"f": 1.0}) for row in (0, 3))
    assert SuiteGates(gates, table).are_settled()


def test_a_run_counts_once():
    followed = SuiteGates([parse_gate("mean >= 0.5")], empty_table(4))
    for _ in range(3):
        followed.add(run_of(1, 0, {"f": 1.0}))
    assert followed.left == 3
    assert not followed.are_settled()


def test_without_gates_or_rows_there_is_nothing_to_wait_for():
    assert SuiteGates([], empty_table(3)).are_settled()
    assert SuiteGates([parse_gate("mean >= 0.5")], empty_table(0)).are_settled()


def follow(rows: int, n: int) -> float:
    """Seconds of this thread for all runs, one after the other."""
    draw = random.Random(3)
    texts = ["mean >= 0.55", "tokens < 1e9"]
    followed = SuiteGates(map(parse_gate, texts), empty_table(rows, n))
    runs = [
        run_of(at // n, at % n, {"f": float(draw.random() < 0.55)}, tokens=10)
        for at in range(rows * n)
    ]
    started = time.thread_time()
    for run in runs:
        followed.add(run)
        followed.are_settled()
    return time.thread_time() - started


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "n"), [(20_000, 1), (1_000, 20)])
def test_following_a_run_costs_as_little_among_20_000_as_among_2_000(rows, n):
    few = follow(rows // 10, n)
    assert follow(rows, n) < 40 * few  # a look at every run each time would be 100
    with cProfile.Profile() as profile:
        follow(rows // 10, n)
    calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls / (rows // 10 * n) < 200
