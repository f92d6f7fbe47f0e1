"""When a session stops starting runs, how fast it sends requests, and that no run gets lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.endpoints import Ask, Endpoint, Step, completion, error_reply, reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.01}

TELLING = """
import os
from pathlib import Path

import pytest

from osmosis_ai.models.rate_limiter import RateLimiter

known = RateLimiter.pause


def pause(limiter, seconds):
    known(limiter, seconds)
    if seconds:
        Path(f"pausing-{os.getpid()}").touch()


def pytest_configure(config):
    patch = pytest.MonkeyPatch()
    patch.setattr(RateLimiter, "pause", pause)
    config.add_cleanup(patch.undo)
"""
"""Each process leaves a file when it is asked to send nothing for a while."""


def stopped(session: Session) -> str:
    [line] = [line for line in session.lines if line.startswith("stopped: ")]
    return line


@pytest.mark.fault("a budget of money, tokens or time is spent")
@each_mode
def test_a_spent_time_budget_finishes_what_is_in_flight(
    project: Project, endpoint: Endpoint, workers: int
):
    endpoint.latency_s = 0.1
    project.rows(*(f"row {number}" for number in range(50)))
    session = project.run("--osmosis-max-time=0.25", "--batch-size=2", workers=workers)
    assert session.ret == 1
    assert stopped(session) == "stopped: the time budget of 0.25 s is spent"
    assert session.report["summary"]["total_runs"] == endpoint.requests < 50
    assert all(run["outcome"] == "passed" for run in session.runs)


def test_the_time_budget_begins_with_the_first_run(project: Project):
    project.rows("a", "b")
    for name, begun in (("ahead", False), ("behind", True)):
        project.write(
            f"test_{name}.py",
            "import threading\n\n"
            "def test_clock():\n"
            "    clocks = [getattr(each, 'interval', None) for each in threading.enumerate()]\n"
            f"    assert (3600.0 in clocks) is {begun}\n",
        )
    files = ("test_ahead.py", "data.jsonl", "test_behind.py")
    session = project.run(*files, "--osmosis-max-time=3600")
    assert session.outcomes == {"passed": 4}, session.out


@pytest.mark.fault("a budget of money, tokens or time is spent")
def test_the_cost_that_is_shown_is_the_one_that_was_used_and_a_last_run_stops_nothing(
    project: Project, endpoint: Endpoint
):
    def answers(ask: Ask) -> Iterator[Step]:
        while endpoint.requests < 12:
            yield 0.01  # until every run is in flight
        yield reply(200, priced(ask))

    def priced(ask: Ask) -> dict[str, Any]:
        return completion(ask.row, usage={**USAGE, "cost": None})

    endpoint.answers = priced
    project.rows(*"abcdefghijkl")
    options = "--osmosis-max-cost=0.001", "--osmosis-price-per-mtok=100,1000"
    first = project.run(*options, "--batch-size=2")
    assert first.ret == 1
    cost = first.report["summary"]["cost_usd"]
    assert stopped(first) == f"stopped: the budget of $0.001 is spent (${cost:.4f} used)"
    endpoint.answers = answers
    rest = project.run(*options, "--batch-size=12")
    assert (rest.ret, rest.outcomes) == (0, {"passed": 12})
    assert "stopped: " not in rest.out and "not complete" not in rest.out
    assert rest.report["summary"]["complete"] is True
    assert endpoint.requests == 12


@pytest.mark.slow
@pytest.mark.fault("it says how long to wait (Retry-After in seconds, milliseconds, as a date)")
@each_mode
def test_no_worker_sends_a_request_before_another_ones_retry_after(
    project: Project, endpoint: Endpoint, workers: int
):
    refused_at: list[float] = []

    def answers(ask: Ask) -> Iterator[Step]:
        first = endpoint.requests == 1
        while endpoint.requests < 2:
            yield 0.01
        if first:
            refused_at.append(time.monotonic())
            yield error_reply(429, "slow down", headers={"Retry-After": "1"})
            return
        if ask is endpoint.seen[1]:
            while len([*project.path.glob("pausing-*")]) < (workers or 1):
                yield 0.01  # until each process knows of the refusal
        yield reply(200, completion(ask.row))

    endpoint.answers = answers
    project.write("conftest.py", TELLING)
    project.rows(*(f"row {number}" for number in range(6)))
    session = project.run("--batch-size=2", workers=workers)
    assert session.outcomes == {"passed": 6}
    [refused] = refused_at
    assert [ask for ask in endpoint.seen if refused < ask.at < refused + 1.0] == []
    assert endpoint.max_in_flight == 2
    assert sorted(run["retries"] for run in session.runs) == [0] * 5 + [1]
    assert session.report["summary"]["complete"] is True


@each_mode
def test_a_test_that_is_skipped_is_not_lost_and_one_with_a_marker_not_paid_for(
    project: Project, workers: int
):
    project.rows("not paid", name="unpaid.jsonl")
    project.rows("skipped later", name="later.jsonl")
    project.rows("a", "b")
    project.write(
        "test_it.py",
        """
import pytest

@pytest.fixture
def not_here():
    pytest.skip("not here")

@pytest.mark.skip
@pytest.mark.osmosis(agent="agent:agent_loop", data="unpaid.jsonl")
def test_skipped(rollout): ...

@pytest.mark.skipif("True", reason="not yet")
@pytest.mark.osmosis(agent="agent:agent_loop", data="unpaid.jsonl")
def test_skipped_here(rollout): ...

@pytest.mark.xfail(run=False)
@pytest.mark.osmosis(agent="agent:agent_loop", data="unpaid.jsonl")
def test_not_run(rollout): ...

@pytest.mark.osmosis(agent="agent:agent_loop", data="later.jsonl")
def test_fixture(not_here, rollout): ...

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_run(rollout): ...
""",
    )
    session = project.run(workers=workers, agent=None, data=None, eval_fn=None)
    assert session.ret == 0
    assert session.outcomes == {"passed": 2, "skipped": 3, "xfailed": 1}
    assert "never reported" not in session.out
    paid = dict(project.endpoint.by_row)
    paid.pop("skipped later", None)  # whether its rollout began before its fixture skipped is open
    assert paid == {"a": 1, "b": 1}


@pytest.mark.fault("answers, conversations or ids are huge")
@each_mode
def test_what_is_huge_is_cut_and_the_session_goes_on(
    project: Project, endpoint: Endpoint, workers: int
):
    answers: dict[str, Any] = {"long": "x" * 3_000_000, "short": "short"}
    endpoint.answers = answers
    name = "n" * 5000
    project.rows(
        {"user_prompt": "long", "ground_truth": "y", "id": name},
        {"user_prompt": "short", "ground_truth": "short", "id": "short"},
    )
    session = project.run("-v", "--junitxml=out.xml", workers=workers)
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert max(len(run["answer"]) for run in session.runs) == 2000
    assert (project.path / "out.json").stat().st_size < 100_000
    assert (project.path / "out.xml").stat().st_size < 100_000
    assert len(session.out) < 30_000
    cases = session.junit.findall(".//testcase")
    assert all(len(case.attrib["name"]) <= 200 for case in cases)
    lines = (project.path / "out.trajectories.jsonl").read_text().splitlines()
    assert [type(json.loads(line)) for line in lines] == [dict, dict]


@pytest.mark.fault("a budget of money where the price is not known")
def test_items_are_listed_where_a_budget_of_money_could_not_be_kept(project: Project):
    project.rows("a")
    listed = project.run("--collect-only", "-q", "--osmosis-max-cost=1")
    assert (listed.ret, "row-0" in listed.out) == (0, True), listed.out
    refused = project.run("--osmosis-max-cost=1")
    assert refused.ret == 4 and "the price of" in refused.out + refused.err
