"""Whose failure it is where an agent asks an endpoint with a client of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.support.client_calls import events
from tests.support.endpoints import Ask, completion, error_reply, refusing_address, reply
from tests.support.project import Project, Session

AGENT = """
import os

import httpx
import openai

from osmosis_ai import record

SETTINGS = {
    "base_url": os.environ["MODEL_URL"],
    "api_key": "k",
    "max_retries": 0,
    "default_headers": {"Connection": "close"},  # no connection outlives the session's event loop
}
ALONE = openai.AsyncOpenAI(**SETTINGS)
RECORDED = record(openai.AsyncOpenAI(**SETTINGS))


async def ask(client, question, **more):
    messages = [{"role": "user", "content": question}]
    return await client.chat.completions.create(model="m", messages=messages, **more)


async def answer(client, question):
    found = await ask(client, question)
    return found.choices[0].message.content


async def alone(question):
    return await answer(ALONE, question)


async def recorded(question):
    return await answer(RECORDED, question)


async def behaves(question):
    how, _, asked = question.partition(": ")
    client = RECORDED if how.startswith("recorded") else ALONE
    how = how.removeprefix("recorded ")
    if how == "uses a tool":
        url = SETTINGS["base_url"] + "/chat/completions"
        httpx.post(url, json={}, timeout=60).raise_for_status()
    try:
        return await answer(client, asked)
    except openai.APIError as error:
        if how == "raises it":
            raise
        if how == "wraps it":
            raise LookupError("no plan") from error
        if how == "raises within":
            raise ValueError("no plan")
        if how == "hides it":
            raise ValueError("no plan") from None
        if how == "quotes it":
            raise ValueError(f"no plan: {error}") from None
        if how == "answers all the same":
            return asked
        if how == "asks again, then fails":
            await answer(client, "good")
            raise ValueError("no plan")
    raise ValueError("its own")


async def patient(question):
    is_streamed = question != "whole"
    found = await ask(RECORDED, question, stream=is_streamed)
    async for part in found:
        pass
"""

FAULTS: dict[str, tuple[str, str | None, str | None]] = {
    # what the endpoint does: outcome, type and kind of error
    "good": ("passed", None, None),
    "500": ("error", "provider", "overloaded"),
    "503": ("error", "provider", "overloaded"),
    "429": ("error", "provider", "rate_limited"),
    "400": ("raised", "agent", "bad_request"),
    "403 flagged": ("raised", "agent", "bad_request"),
    "reset": ("error", "provider", "connection"),
}
SILENT = ("200 choice", "200 reason", "200 error", "200 page")
"""Failures inside a 200: `record` sees them, and the client does not."""
WAYS: dict[str, tuple[str, str | None]] = {
    # what the agent does with a 500: outcome, type of error
    "wraps it": ("error", "provider"),
    "recorded wraps it": ("error", "provider"),
    "raises within": ("error", "provider"),
    "recorded raises within": ("error", "provider"),
    "recorded quotes it": ("error", "provider"),
    "hides it": ("raised", "agent"),
    "recorded hides it": ("raised", "agent"),
    "goes on": ("raised", "agent"),
    "recorded goes on": ("raised", "agent"),
    "recorded asks again, then fails": ("raised", "agent"),
    "uses a tool": ("raised", "agent"),
    "answers all the same": ("passed", None),
    "recorded answers all the same": ("passed", None),
}
EXPECTED: dict[str, tuple[str, str | None, str | None]] = {
    **{f"raises it: {fault}": expected for fault, expected in FAULTS.items()},
    **{f"recorded raises it: {fault}": expected for fault, expected in FAULTS.items()},
    **{f"recorded raises it: {fault}": ("error", "provider", None) for fault in SILENT},
    **{f"{way}: 500": (*expected, None) for way, expected in WAYS.items()},
}


def answers(ask: Ask) -> Any:
    asked = ask.row
    if asked == "reset":
        return ["reset"]
    if asked == "403 flagged":
        return [error_reply(403, "Your input was flagged by the moderation")]
    if asked == "200 page":
        return [reply(200, b"<html>", headers={"Content-Type": "text/html"})]
    if asked == "200 error":
        return [reply(200, {"error": {"message": "busy", "code": 502}})]
    answered = completion(asked)
    choice = answered["choices"][0]
    if asked == "200 choice":
        choice.update(error={"code": 502, "message": "busy"}, finish_reason="error")
    elif asked == "200 reason":
        choice["finish_reason"] = "error"
    elif asked.isdigit():
        return [error_reply(int(asked), f"failed with {asked}")]
    return answered


@pytest.fixture
def own(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose agents ask its endpoint with clients of their own."""
    monkeypatch.setenv("MODEL_URL", project.endpoint.base_url)
    project.write("own.py", AGENT)
    project.endpoint.answers = answers
    return project


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """The library stays in this process; pytester forgets what is imported after it has begun."""
    import openai

    async def call() -> None:  # more is imported by the first call and the first failure
        with refusing_address() as netloc, suppress(openai.APIConnectionError):
            client = openai.AsyncOpenAI(base_url=f"http://{netloc}", api_key="k", max_retries=0)
            async with client:
                await client.chat.completions.create(model="m", messages=[])

    asyncio.run(call())


def evaluated(own: Project, agent: str, *more: str) -> Session:
    return own.run(*more, agent=f"own:{agent}", model=None, base_url=None)


@pytest.mark.fault(
    "it fails the client of a function, a workflow or a framework, with `record` or without",
    "a reply to such a client fails inside a 200",
)
def test_the_endpoint_or_the_agent_is_blamed_as_with_our_own_calls(own: Project):
    own.rows(*({"user_prompt": row, "ground_truth": row.partition(": ")[2]} for row in EXPECTED))
    session = evaluated(own, "behaves", "--batch-size=4")
    for (row, (outcome, type_, kind)), run in zip(EXPECTED.items(), session.runs, strict=True):
        assert (run["outcome"], run["error_type"]) == (outcome, type_), (row, run)
        assert kind in (None, run["error_kind"]), (row, run)
        if type_ == "provider":
            assert f" from {own.endpoint.netloc}" in run["error"], run
    blamed = [outcome == "error" for outcome, _, _ in EXPECTED.values()]
    figures = session.report["summary"]["eval_fns"]["rewards:exact"]
    assert figures["scored"] == blamed.count(False)
    assert figures["mean"] == 4 / blamed.count(False)  # good replies, and answers all the same
    assert f"{sum(blamed)} runs without a score, left out of every figure" in session.out


@pytest.mark.parametrize("agent", ["alone", "recorded"])
def test_a_refused_key_of_a_function_stops_the_session(own: Project, agent: str):
    own.endpoint.answers = lambda ask: [error_reply(401, "wrong", code="invalid_api_key")]
    own.rows(*(f"row {number}" for number in range(12)))
    session = evaluated(own, agent)
    assert session.ret == 1 and own.endpoint.requests < 6
    assert "the key was refused" in session.refusal


def test_a_function_whose_endpoint_is_away_stops_the_session_and_resumes(
    own: Project, monkeypatch: pytest.MonkeyPatch
):
    own.rows(*(f"row {number}" for number in range(12)))
    with refusing_address() as netloc:
        monkeypatch.setenv("MODEL_URL", f"http://{netloc}/v1")
        session = evaluated(own, "alone")
    summary = session.report["summary"]
    assert session.ret == 1 and summary["total_runs"] < 12
    assert f"cannot reach http://{netloc}" in summary["halted"]


def test_runs_that_an_endpoint_failed_are_run_again(own: Project):
    failing = {"is": True}
    own.endpoint.answers = lambda ask: (
        [error_reply(503, "busy")] if failing["is"] and ask.row == "b" else ask.row
    )
    own.rows("a", "b")
    session = evaluated(own, "alone")
    assert [run["outcome"] for run in session.runs] == ["passed", "error"]
    failing["is"] = False
    again = evaluated(own, "alone")
    assert again.ret == 0 and own.endpoint.by_row == {"a": 1, "b": 2}


def test_a_reply_that_was_arriving_when_time_was_up_is_the_agents(own: Project):
    part = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": "4"}}]}  # fmt: skip
    own.endpoint.answers = lambda ask: (
        events(part, then=["hang"]) if ask.row == "arriving" else ["hang"]
    )
    own.rows("arriving", "silent", "whole")
    session = evaluated(own, "patient", "--batch-size=3", "--osmosis-agent-timeout=4")
    found = [(run["error_type"], run["error_kind"]) for run in session.runs]
    assert found == [("timeout", None), ("provider", "timeout"), ("provider", "not_streamed")]
    assert "1 run timed out within a call that is not streamed" in session.out
