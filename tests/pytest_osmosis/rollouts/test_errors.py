"""Whose failure it is when an agent's time is up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.progress import CallProgress
from pytest_osmosis.rollouts.errors import timed_out


class Waited(CallProgress):
    """A call that has been under way for so long."""

    waited_s = 0.0


def run_with(waited_s: float | None, *, tries: int = 1) -> Any:
    if waited_s is None:
        return SimpleNamespace(llm=SimpleNamespace(longest_wait=lambda: None))
    call = Waited("localhost:8000", None)
    call.waited_s, call.tries = waited_s, tries
    if tries > 1:
        call.failed(CallFault("overloaded", "busy"), lambda fault: f"503 ({fault})")
    return SimpleNamespace(llm=SimpleNamespace(longest_wait=lambda: call))


def test_an_agent_that_goes_round_in_circles_has_failed_itself():
    for run in (SimpleNamespace(llm=None), run_with(None), run_with(0.2), run_with(4.0)):
        failure = timed_out(8.0, run)
        assert (failure.type, failure.message) == ("timeout", "the agent timed out after 8 s")


def test_one_call_that_took_more_than_half_of_the_time_is_the_endpoints():
    failure = timed_out(8.0, run_with(4.1))
    assert (failure.type, failure.kind, failure.fatal) == ("provider", "not_streamed", False)
    said = "no answer from localhost:8000 in 4.1 s, when the agent's 8 s were up"
    assert failure.message == said
    failure = timed_out(8.0, run_with(7.9, tries=5))
    assert failure.kind == "overloaded"
    assert "in 7.9 s (5 tries; the last: 503 (busy)), when" in failure.message


def test_what_the_last_try_said_is_not_said_twice():
    for text, shown in (
        ("no answer from localhost:8000 (reset by peer)", "reset by peer"),
        ('503 from localhost:8000 ("busy")', '503 ("busy")'),
    ):
        run = run_with(7.9, tries=2)
        run.llm.longest_wait().failed(CallFault("overloaded"), lambda fault, text=text: text)
        assert f"(2 tries; the last: {shown}), when" in timed_out(8.0, run).message
