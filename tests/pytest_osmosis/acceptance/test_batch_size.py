"""`--batch-size B`: B rollouts in flight in all, never one more."""

from __future__ import annotations

import pytest

from tests.support.modes import each_mode
from tests.support.project import AGENT, Project

ROWS = [f"question {number}" for number in range(24)]


@pytest.fixture
def slow(project: Project) -> Project:
    """An endpoint that takes its time, so that rollouts overlap as far as they may."""
    project.endpoint.latency_s = 0.02
    project.rows(*ROWS)
    return project


@pytest.mark.parametrize(("workers", "size"), [(0, 5), pytest.param(2, 5, marks=pytest.mark.slow)])
def test_as_many_are_in_flight_and_never_more(slow: Project, workers: int, size: int):
    slow.endpoint.full_at = size
    session = slow.run(f"--batch-size={size}", workers=workers)
    assert session.outcomes == {"passed": 24}
    assert slow.endpoint.max_in_flight == size
    assert slow.endpoint.requests == 24
    assert set(slow.endpoint.by_row.values()) == {1}


SCHEDULER = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScheduling

    class Own(LoadScheduling):
        pass

    return Own(config, log)
"""


@pytest.mark.slow
def test_a_scheduler_of_the_project_is_not_used_and_this_is_said(slow: Project):
    slow.write("conftest.py", SCHEDULER)
    slow.endpoint.full_at = 5
    session = slow.run("--batch-size=5", workers=2)
    assert session.outcomes == {"passed": 24, "warnings": 1}
    assert slow.endpoint.max_in_flight == 5
    assert "conftest.Own, which pytest_xdist_make_scheduler gives, is not used" in session.out
    assert len(session.runs) == 24


def test_one_at_a_time_is_one_after_the_other(slow: Project):
    slow.endpoint.latency_s = 0.005
    session = slow.run(n="2", limit="6")
    assert session.outcomes == {"passed": 12}
    assert slow.endpoint.max_in_flight == 1
    assert [ask.row for ask in slow.endpoint.seen] == [row for row in ROWS[:6] for _ in range(2)]


@pytest.mark.slow
def test_a_rollout_of_many_calls_counts_once(slow: Project):
    call = "answer = await ctx.chat(messages, **ctx.request.completion_params)"
    assert call in AGENT
    slow.write("agent.py", AGENT.replace(call, f"{call}\n        {call}\n        {call}"))
    slow.endpoint.latency_s, slow.endpoint.full_at = 0.02, 4
    slow.run("--batch-size=4")
    assert slow.endpoint.requests == 72
    assert slow.endpoint.max_in_flight == 4


@pytest.mark.slow
def test_w_processes_mean_w_at_once_unless_it_is_said(slow: Project):
    slow.endpoint.full_at = 2
    session = slow.run(workers=2, limit="8")
    assert session.outcomes == {"passed": 8}
    assert slow.endpoint.max_in_flight == 2


@pytest.mark.slow
def test_a_batch_size_of_its_own_starts_workers(slow: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_osmosis.distributed.processes.cores", lambda: 2)
    slow.endpoint.full_at = 6
    session = slow.plain(*slow.options("--batch-size=6"))
    assert "6 in flight over 2 workers" in session.out
    assert slow.endpoint.max_in_flight == 6


@each_mode
def test_an_ordinary_test_between_runs_meets_no_rollout(project: Project, workers: int):
    project.rows("early 1", "early 2", name="early.jsonl")
    project.rows("late 1", "late 2", name="late.jsonl")
    project.write(
        "noting.py",
        """
from agent import Agent

started = []

class Noting(Agent):
    async def run(self, ctx):
        started.append(ctx.request.messages[-1]["content"])
        return await super().run(ctx)

agent_loop = Noting()
""",
    )
    project.write(
        "test_it.py",
        """
import noting
import pytest

@pytest.mark.osmosis(agent="noting:agent_loop", data="early.jsonl")
def test_early(rollout): ...

def test_ordinary():
    assert not [row for row in noting.started if "late" in row]

@pytest.mark.osmosis(agent="noting:agent_loop", data="late.jsonl")
def test_late(rollout): ...
""",
    )
    session = project.run(workers=workers, agent=None, data=None, eval_fn=None)
    assert session.outcomes == {"passed": 5}
    assert project.endpoint.requests == 4
