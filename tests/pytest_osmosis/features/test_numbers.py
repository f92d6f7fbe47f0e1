"""Gates on numbers of runs: their figures, their limits, what is not known, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.support.endpoints import Ask, failure_reply
from tests.support.project import Project, Session


@pytest.fixture
def rows(project: Project) -> Project:
    names = ["a", "bb", "wrong", "refused"]
    project.rows(
        *({"id": f"q-{name}", "user_prompt": name, "ground_truth": name} for name in names)
    )
    project.endpoint.answers = lambda ask: "no" if ask.row == "wrong" else ask.row
    return project


def gates(session: Session) -> dict[str, Any]:
    return {gate["gate"]: gate for gate in session.report["gates"]}


def gated(project: Project, *said: str, more: tuple[str, ...] = ()) -> Session:
    return project.run(*(f"--osmosis-gate={gate}" for gate in said), *more)


def test_figures_are_those_of_the_runs(rows: Project):
    session = gated(
        rows, "mean(tokens) <= 1e6", "max(tokens) >= 1", "p50(llm_calls) == 1", "mean(turns) == 1",
        "p95(duration_s) > 600", "max(tool_calls) == 0", "p50(exact) >= 1", "mean(exact) >= 0.7",
    )  # fmt: skip
    found, runs = gates(session), [run for row in session.report["rows"] for run in row["runs"]]
    tokens = [run["tokens"] for run in runs]
    figures = {name: gate["figure"]["value"] for name, gate in found.items()}
    assert figures["mean(tokens) <= 1e6"] == pytest.approx(sum(tokens) / 4)
    assert figures["max(tokens) >= 1"] == max(tokens)
    assert figures["p95(duration_s) > 600"] == max(run["duration_ms"] for run in runs) / 1000
    assert figures["p50(exact) >= 1"] == 1
    assert [gate["outcome"] for gate in found.values()] == [
        *["passed"] * 4, "failed", *["passed"] * 3
    ]  # fmt: skip
    assert session.ret == 1


def test_what_is_not_known_is_no_zero(rows: Project):
    def answer(ask: Ask) -> str | bytes:
        return failure_reply("come back later") if ask.row == "refused" else ask.row

    rows.endpoint.answers = answer
    session = gated(rows, "mean(cost_usd) <= 1", "p50(tokens) <= 1e6", "p99(tokens) <= 1e6")
    found = gates(session)
    assert [gate["outcome"] for gate in found.values()] == [
        "inconclusive",
        "passed",
        "inconclusive",
    ]
    assert found["mean(cost_usd) <= 1"]["figure"] is None
    assert found["mean(cost_usd) <= 1"]["unknown"] == 4
    assert found["p99(tokens) <= 1e6"]["unknown"] == 1
    assert session.ret == 8


def test_with_a_confidence_a_percentile_needs_rows(rows: Project):
    session = gated(
        rows, "p95(tokens) <= 1e6", "p50(tokens) >= 0", more=("--osmosis-confidence=0.95",)
    )
    open_, held = gates(session).values()
    assert (open_["outcome"], held["outcome"]) == ("inconclusive", "passed")
    assert "72 rows have limits of p95(tokens)" in open_["sentence"]
    assert math.ceil(math.log(0.025) / math.log(0.95)) == 72


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("p95(first_token_s) <= 2", "when the first token came is not recorded"),
        ("p42(tokens) <= 2", "'p42' is no summary, only mean, p50, p90, p95, p99, max"),
        ("p95() <= 2", "the parentheses hold neither a number"),
        ("p95(duration) <= 2", "did you mean the number 'duration_s'?"),
        ("p95(tokens)[exact] <= 2", "it takes no [eval function]"),
        ("mean(tokens) <= 20%", "mean(tokens) is no share"),
        ("p95(tokens) - baseline <= 2", "and mean(NUMBER) compare with a baseline, not p95("),
        ("mean(tokens) - baseline <= 1/10", "mean(tokens) is no share"),
        ("mean(tokens) - baseline < -100%", "is at least -1, and never < -100%"),
        ("mean(tokens) - baseline <= 10%", "there is no baseline: name one"),
        ("mean(tokens) < 0", "did you mean <= 0?"),
    ],
)
def test_mistakes_are_named(rows: Project, gate: str, said: str):
    session = gated(rows, gate)
    assert session.ret == 4
    assert said in session.mistake


SHARED = """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_one(rollout):
    pass

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_two(rollout):
    pass
"""


@pytest.mark.parametrize(("gate", "ret"), [("mean(tokens) >= 1", 4), ("max(duration_s) <= 600", 0)])
def test_rollouts_that_tests_share_are_not_taken_for_free_ones(rows: Project, gate: str, ret: int):
    rows.write("test_it.py", SHARED)
    session = rows.plain(
        "test_it.py", "--osmosis-model=m", f"--osmosis-base-url={rows.endpoint.base_url}",
        f"--osmosis-gate={gate}",
    )  # fmt: skip
    assert session.ret == ret, session.out
    assert ("shares its rollouts with another test" in session.out + session.err) == (ret == 4)


def test_a_score_of_a_numbers_name_is_not_taken_for_it(rows: Project):
    rows.write("own.py", "def tokens(solution_str, ground_truth, extra_info=None): return 1.0\n")
    session = rows.run("--osmosis-gate=mean(tokens) <= 1e6", "--eval-fn=own:tokens")
    assert session.ret == 4
    assert "tokens is a number of a run and an eval function here" in session.mistake
