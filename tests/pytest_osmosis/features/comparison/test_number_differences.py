"""Gates on how the mean of a number differs from a baseline's, against independent truths."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.score_table import ScoreTable
from pytest_osmosis.verdicts import POINT_ESTIMATES, GateResult, gate_fields
from tests.support.endpoints import completion, reply
from tests.support.project import Project, Session
from tests.support.score_tables import empty_table, run_of


def costs(rows: Sequence[Sequence[float | None]]) -> ScoreTable:
    """A table of runs that cost so much; None: it is not known."""
    table = empty_table(len(rows), len(rows[0]))
    table.record(
        run_of(row, run, {"f": 1.0}, cost_usd=cost)
        for row, found in enumerate(rows)
        for run, cost in enumerate(found)
    )
    return table


def verdict(said: str, here: Any, there: Any, confidence: float | None = None) -> GateResult:
    gate = parse_gate(f"mean(cost_usd) - baseline {said}")
    return evaluate(gate, costs(here), baseline=costs(there), confidence=confidence)


def session(draw: np.random.Generator, level: Any, change: float = 0.0) -> list[list[float]]:
    """One run of each row, which costs what its row does, times luck, times 1 + change."""
    found = level * draw.lognormal(0, 0.4, len(level)) * (1.0 + change)
    return [[each] for each in found.tolist()]


def test_with_many_rows_intervals_are_those_of_student_and_fieller():
    draw = np.random.default_rng(1)
    level = draw.lognormal(0, 0.6, 400)
    here, there = session(draw, level, 0.2), session(draw, level)
    x, y = (np.array(side)[:, 0] for side in (here, there))
    error, t = (x - y).std(ddof=1) / 20, 1.9659
    plain = verdict("<= 0.1", here, there)
    assert plain.figure == pytest.approx((x - y).mean())
    assert plain.interval is not None
    found = [plain.interval.low, plain.interval.high]
    assert found == pytest.approx([(x - y).mean() + side * t * error for side in (-1, 1)], rel=0.03)

    ratio = verdict("<= 10%", here, there)
    assert ratio.figure == pytest.approx(x.mean() / y.mean() - 1)
    cov = np.cov(x, y) / 400  # of the means; Fieller: (x - r y)^2 <= t^2 Var(x - r y) is quadratic
    roots = np.roots([
        y.mean() ** 2 - t**2 * cov[1, 1],
        -2 * (x.mean() * y.mean() - t**2 * cov[0, 1]),
        x.mean() ** 2 - t**2 * cov[0, 0],
    ])  # fmt: skip
    assert ratio.interval is not None
    found = [ratio.interval.low, ratio.interval.high]
    assert found == pytest.approx(sorted(roots - 1), rel=0.03)


SAME, DOUBLE = [[2.0]] * 20, [[4.0]] * 20
KNOWN = [[1.0 + row % 3] for row in range(20)]


@pytest.mark.parametrize(
    ("said", "here", "there", "outcome", "words"),
    [
        ("<= 10%", SAME, SAME, "passed", "2 here, 2 in the baseline; "),
        ("<= 50%", SAME, SAME, "passed", "holds"),
        ("<= 10%", DOUBLE, SAME, "failed", "4 here, 2 in the baseline"),
        ("<= 0.5", DOUBLE, SAME, "failed", ""),
        (">= -10%", SAME, DOUBLE, "failed", ""),
        ("<= 10%", SAME, DOUBLE, "passed", "holds"),
        ("<= 0.1", SAME[:4], [[1.8]] * 4, "passed", "no rise shown: 4 rows can show none"),
        ("<= 5%", [[2.0]] * 5 + [[3.0]] * 3, SAME[:8], "passed", "8 rows say too little of how"),
        ("<= 50%", [[2.0]] * 5 + [[3.0]] * 3, SAME[:8], "passed", "no rise shown"),
        ("<= 10%", DOUBLE, [[0.0]] * 20, "inconclusive", ""),
        ("<= 1", [[0.0]] * 20, [[0.0]] * 20, "passed", ""),
        ("<= 10%", [[None]] * 20, SAME, "inconclusive", ""),
        ("<= 50%", [[None], *KNOWN[1:]], KNOWN, "inconclusive", ""),
        ("<= 50%", KNOWN, [[None], *KNOWN[1:]], "passed", ""),
        ("<= 5%", [[None], *DOUBLE[1:]], SAME, "failed", ""),
    ],
)
def test_a_gate_fails_for_what_is_shown(said: str, here: Any, there: Any, outcome: str, words: str):
    found = verdict(said, here, there)
    assert (found.outcome, words in found.detail) == (outcome, True), found


def test_with_a_confidence_the_whole_interval_decides():
    assert verdict("<= 5%", SAME, SAME, 0.95).outcome == "inconclusive"
    assert verdict("<= 50%", SAME, SAME, 0.95).outcome == "passed"
    assert verdict("<= 5%", DOUBLE, SAME, 0.95).outcome == "failed"
    assert verdict("<= 0%", [[2.0001]] * 20, SAME, POINT_ESTIMATES).outcome == "failed"
    lacking = verdict("<= 5%", SAME, [[0.0]] * 20)
    assert lacking.reason == "the baseline's mean is 0: give a number, no percentage"


def test_a_ratio_may_have_no_upper_limit_and_no_report_holds_infinity():
    found = verdict("<= 50%", [[1.0]] * 4, [[9.0], [0.0], [0.0], [0.0]], 0.95)
    assert (found.outcome, found.interval, found.high) == ("inconclusive", None, math.inf)
    assert json.loads(json.dumps(gate_fields(found), allow_nan=False))["high"] == "inf"


def test_luck_rarely_fails_and_the_rise_that_is_named_is_found():
    """Of 100 pairs: 40 rows, log-normal costs, the rise that the gate named on average."""
    draw = np.random.default_rng(2)
    level = draw.lognormal(0, 0.6, 40)

    def pair(change: float) -> GateResult:
        return verdict("<= 0%", session(draw, level, change), session(draw, level))

    luck = [pair(0.0) for _ in range(100)]
    assert sum(each.outcome == "failed" for each in luck) <= 7
    covered = [each.interval.low <= 0 <= each.interval.high for each in luck if each.interval]
    assert sum(covered) >= 93
    named = [each.sensitivity for each in luck if each.sensitivity]
    assert f"would show one of {100 * named[-1]:.0f}%" in luck[-1].detail
    rise = math.fsum(named) / len(named)
    assert 68 <= sum(pair(rise).outcome == "failed" for _ in range(100)) <= 92


def test_an_agent_that_became_dearer_fails(project: Project):
    names = [f"{topic} {at}" for topic in ("law", "tax") for at in range(8)]
    project.rows(*(
        {"user_prompt": name, "ground_truth": name, "topic": name.partition(" ")[0]}
        for name in names
    ))  # fmt: skip
    project.run("--osmosis-output=before.json")

    def again(*more: str) -> Session:
        gates = ("mean(tokens) - baseline <= 10%", "each topic: mean(tokens) - baseline <= 4")
        given = (f"--osmosis-gate={gate}" for gate in gates)
        return project.run(*given, "--osmosis-baseline=before.json", "--osmosis-fresh", *more)

    same = again()
    assert same.ret == 0, same.out
    wordy = {"prompt_tokens": 10, "completion_tokens": 40, "total_tokens": 50}
    project.endpoint.answers = lambda ask: (
        reply(200, completion(ask.row, usage=wordy)) if "tax" in ask.row else ask.row
    )
    dearer = again()
    assert dearer.ret == 1
    whole, each = dearer.report["gates"]
    assert whole["figure"]["value"] == pytest.approx(32.5 / 15 - 1)
    assert "is 116.7% (49.04% .. 184.3%, 95% confidence), 106.7% too much; " in dearer.out
    assert (each["outcome"], each["group"]) == ("failed", "tax")
    assert each["figure"]["value"] == 35
