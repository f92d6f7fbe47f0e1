"""Stopping early: never with another verdict than a full run's."""

from __future__ import annotations

import cProfile
import math
import pstats
import random
import time
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.open_gates import SuiteGates, is_settled, widest_limits
from pytest_osmosis.analysis.gates.parser import Gate, parse_gate
from pytest_osmosis.analysis.metrics import CASES, METRICS, Bounds, Definition, Metric
from pytest_osmosis.analysis.statistics.intervals import unit_interval
from pytest_osmosis.analysis.statistics.paired import paired, widest_paired
from pytest_osmosis.verdicts import POINT_ESTIMATES
from tests.support.random_suites import Suite, outcomes, random_gate, suites
from tests.support.score_tables import empty_table, run_of


@pytest.mark.slow
def test_on_200_random_suites_the_verdicts_are_those_of_a_full_run():
    saved = total = 0
    seen = set()
    for draw, suite in suites(200, seed=1):
        baseline = Suite(draw, rows=suite.rows, n=suite.n).full() if draw.random() < 0.5 else None
        gates = [
            random_gate(draw, suite.n, baseline=baseline is not None)
            for _ in range(draw.randint(1, 2))
        ]
        settings = {"baseline": baseline, "confidence": draw.choice([None, None, POINT_ESTIMATES])}
        stopped, followed = suite.until_decided(gates, **settings)
        verdicts = outcomes(gates, stopped, **settings)
        assert verdicts == outcomes(gates, suite.full(), **settings), gates
        saved, total = saved + followed.left, total + len(suite.order)
        seen.update(verdicts)
    print(f"saved {saved} of {total} runs ({saved / total:.0%})")
    assert saved > 0.2 * total
    assert seen == {"passed", "failed", "inconclusive"}


def test_with_a_confidence_the_verdicts_are_those_of_a_full_run():
    draw = random.Random(5)
    saved = 0
    for _ in range(20):
        suite = Suite(
            draw, rows=draw.choice([1, 8, 30, 60]), n=draw.randint(1, 4), scale=(0.0, 1.0)
        )
        k = draw.randint(1, suite.n)
        metric = draw.choice(["mean[f]", f"pass@{k}[f]", f"pass^{k}[f]", "mean[g]"])
        gates = [
            parse_gate(f"{metric} {draw.choice(['>=', '<'])} {draw.choice([0.1, 0.3, 0.6, 0.9])}")
        ]
        stopped, followed = suite.until_decided(gates, confidence=0.9)
        full = suite.full()
        assert outcomes(gates, stopped, confidence=0.9) == outcomes(gates, full, confidence=0.9)
        saved += followed.left
    assert saved > 0


def test_every_single_gate_keeps_its_verdict_wherever_it_stops():
    draw = random.Random(9)
    for _ in range(150):
        suite = Suite(draw, rows=draw.randint(1, 6), n=draw.randint(1, 3))
        gates = [random_gate(draw, suite.n, baseline=False)]
        stopped, _ = suite.until_decided(gates)
        assert outcomes(gates, stopped) == outcomes(gates, suite.full()), gates


@pytest.mark.parametrize("confidence", [None, POINT_ESTIMATES, 0.9])
def test_a_gate_on_a_difference_keeps_its_verdict_wherever_it_stops(confidence):
    draw, saved, seen = random.Random(11), 0, set()
    for _ in range(18):
        size = {"rows": draw.choice([3, 12, 40]), "n": draw.randint(1, 3), "scale": (0.0, 1.0)}
        suite, baseline = Suite(draw, **size), Suite(draw, **size)
        metric, threshold = draw.choice(["mean[f]", "pass@1[f]"]), draw.choice([-0.3, -0.02, 0.1])
        gates = [parse_gate(f"{metric} - baseline {draw.choice(['>=', '<', '=='])} {threshold}")]
        settings = {"baseline": baseline.full(), "confidence": confidence}
        stopped, followed = suite.until_decided(gates, **settings)
        verdicts = outcomes(gates, suite.full(), **settings)
        assert outcomes(gates, stopped, **settings) == verdicts, gates
        seen.update(verdicts)
        saved += followed.left
    assert saved > 0
    assert seen >= {"passed", "failed"}


def test_no_interval_of_a_difference_passes_the_widest_limits():
    draw = np.random.default_rng(3)
    for _ in range(300):
        lows = draw.integers(-4, 5, draw.integers(1, 30)) / 4
        highs = np.minimum(1.0, lows + draw.integers(0, 3, lows.size) / 4)
        low, high = widest_paired(lows, highs, confidence=0.9)
        for values in (lows, highs, np.where(draw.random(lows.size) < 0.5, lows, highs)):
            found = paired(values, confidence=0.9).interval
            assert low - 1e-12 <= found.low <= found.high <= high + 1e-12


def stops_after(gate: str | Gate, scores, *, rows=None, **settings) -> int | None:
    """How many runs it takes; None when all of them do not decide it before the last."""
    gates = [parse_gate(gate) if isinstance(gate, str) else gate]
    followed = SuiteGates(gates, empty_table(rows or len(scores)), **settings)
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


def test_a_confidence_stops_later_but_stops():
    plain = stops_after("pass@1 >= 0.5", [1.0] * 400)
    sure = stops_after("pass@1 >= 0.5", [1.0] * 400, confidence=0.95)
    assert plain == 200
    assert plain < sure < 400


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


def test_equality_is_open_while_the_threshold_lies_between():
    gate = parse_gate("mean == 0.5")
    assert not is_settled(gate, 0.0, 1.0)
    assert is_settled(gate, 0.6, 1.0)
    assert is_settled(gate, 0.5, 0.5)
    assert not is_settled(gate, 0.5, 0.6)
    assert is_settled(parse_gate("tokens <= 5"), 6.0, math.inf)


def follow(rows: int, n: int, confidence: float | None) -> float:
    """Seconds of this thread for all runs, one after the other."""
    draw = random.Random(3)
    texts = ["mean >= 0.55", "tokens < 1e9"]
    followed = SuiteGates(map(parse_gate, texts), empty_table(rows, n), confidence=confidence)
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
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize(("rows", "n"), [(20_000, 1), (1_000, 20)])
def test_following_a_run_costs_as_little_among_20_000_as_among_2_000(rows, n, confidence):
    few = follow(rows // 10, n, confidence)
    assert follow(rows, n, confidence) < 40 * few  # a look at every run each time would be 100
    with cProfile.Profile() as profile:
        follow(rows // 10, n, confidence)
    calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls / (rows // 10 * n) < 200


def test_no_interval_of_values_in_a_box_passes_its_limits():
    draw = random.Random(6)
    for _ in range(150):
        rows = draw.choice([2, 5, 15, 40, 220])
        open_share = draw.choice([0.0, 0.1, 1.0])
        levels = draw.choice([(0.0, 1.0), (0.0, 0.2, 0.6, 1.0), (0.9, 1.0, 1.0, 1.0)])
        spans = [
            sorted(draw.choices(levels, k=2)) if draw.random() < open_share
            else [draw.choice(levels)] * 2
            for _ in range(rows)
        ]  # fmt: skip
        lows, highs = np.array(spans).T
        lowest, highest = widest_limits(lows, highs, confidence=0.9)
        for _ in range(4):
            found = unit_interval(np.array([*map(draw.choice, spans)]), confidence=0.9)
            assert lowest <= found.low + 1e-12
            assert found.high <= highest + 1e-12
