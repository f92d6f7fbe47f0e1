"""Model calls that a session records, and that another has in place of the network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import Ask, completion, error_reply, streamed
from tests.support.modes import each_mode
from tests.support.project import KEPT, Project, Session

KEY = "sk-a-key-that-no-cassette-may-hold"
RECORD, REPLAY, ASK = (
    "--osmosis-record=taped", "--osmosis-replay=taped", "--osmosis-replay-missing=ask",
)  # fmt: skip
SEVERAL = """
import asyncio

from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "asker"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        for question in (None, "sure?", "sure?"):
            if question is not None:
                messages.append({"role": "user", "content": question})
            messages.append((await ctx.chat(messages)).message)
        same = [{"role": "user", "content": "a number"}]
        numbers = [(await ctx.chat(same)).message["content"] for _ in range(3)]
        messages.append({"role": "assistant", "content": " ".join(numbers)})
        return ctx.complete(messages)


agent_loop = Agent()
"""
JUDGED = """
from osmosis_ai import evaluate_rubric


def judged(solution_str, ground_truth, extra_info):
    model = {"provider": "openai", "model": "gpt-5-mini"}
    return evaluate_rubric("Is it right?", solution_str, model, votes=2)
"""


def counting() -> Callable[[Ask], Any]:
    """Answers that are all different, with the key in each: no answer stands in for another."""
    count = iter(range(10_000))
    return lambda ask: f"answer {next(count)}, {KEY}"


def answers(session: Session) -> list[str]:
    """The answers of all runs: to be read before the next session."""
    return [run["answer"] for run in session.runs]


def taped(project: Project) -> str:
    return (project.path / "taped/calls.jsonl").read_text("utf-8")


@each_mode
def test_a_replay_has_the_answers_of_each_run_and_sends_nothing(
    project: Project, workers: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("agent.py", SEVERAL)
    project.endpoint.answers = counting()
    project.rows("a", f"b {KEY}", "a")
    options = ["--n=3", "--osmosis-seed=7", "--batch-size=4", "--tb=no"]
    first = project.run(RECORD, *options, workers=workers).report
    assert project.endpoint.requests == 3 * 3 * 6
    assert [path.name for path in (project.path / "taped").iterdir()] == ["calls.jsonl"]
    assert KEY not in taped(project) and "***" in taped(project)
    assert not re.search("authorization|cookie|user-agent", taped(project).lower())

    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OTHER_TOKEN", KEY)  # is in the dataset: masked, it is still the same
    kept = taped(project)
    again = project.run(REPLAY, *options, workers=workers, base_url="http://127.0.0.1:1/v1").report
    before, now = ([run for row in each["rows"] for run in row["runs"]] for each in (first, again))
    compared = ("answer", "scores", "tokens", "llm_calls", "success", "error")
    assert [[run[name] for name in compared] for run in now] == [
        [run[name] for name in compared] for run in before
    ]
    assert len({run["answer"] for run in now}) == 9
    assert project.endpoint.requests == 3 * 3 * 6 and taped(project) == kept


def test_a_key_is_needed_only_where_a_request_is_sent(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MY_KEY", KEY)
    named = "--osmosis-api-key-env=MY_KEY"
    project.rows("a")
    assert project.run(RECORD, named).ret == 0
    monkeypatch.delenv("MY_KEY")
    session = project.run(REPLAY, named)
    assert session.ret == 0 and "key:" not in session.out
    assert "MY_KEY is not set" in project.run(REPLAY, ASK, named).mistake
    assert project.endpoint.requests == 1


@pytest.mark.fault("a request is not in the recording that is replayed")
def test_a_changed_prompt_is_an_error_that_names_its_words(project: Project):
    project.rows({"user_prompt": "Say six.", "system_prompt": "Answer in one word."}, "other")
    assert project.run(RECORD, "--osmosis-temperature=0").report["summary"]["total_runs"] == 2
    project.rows({"user_prompt": "Say six.", "system_prompt": "Answer in two words."}, "other")
    session = project.run(REPLAY, "--osmosis-temperature=0")
    [changed, same] = session.runs
    assert session.outcomes == {"errors": 1, "passed": 1}
    assert changed["error_type"] == "provider" and same["success"]
    difference = 'messages[0] (system) was "Answer in one word." and is "Answer in two words."'
    assert difference in changed["error"] and "row 0, run 0" in changed["error"]
    session = project.run(REPLAY, "--osmosis-temperature=0.5")
    assert "temperature was" in session.runs[1]["error"]
    assert "gone on" not in session.out and project.endpoint.requests == 2


def test_a_replay_imports_no_client_of_the_network(project: Project):
    project.rows("a")
    project.run(RECORD)
    project.write(
        "rewards.py",
        "import sys\n\ndef exact(solution_str, ground_truth):\n"
        "    return float('aiohttp' not in sys.modules)\n",
    )
    options = project.options("-n0", "--osmosis-fresh")
    assert project.apart(*options, REPLAY).outcomes == {"passed": 1}
    assert project.apart(*options).outcomes == {"failed": 1}


def test_a_run_that_was_not_recorded_gets_no_other_runs_answer(project: Project):
    project.rows("a")
    project.run(RECORD, "--n=2")
    session = project.run(REPLAY, "--n=3")
    assert session.outcomes == {"passed": 2, "errors": 1}
    message = "its request is recorded for row 0, run 0 and 1 more, as often as these have made it"
    assert message in session.runs[2]["error"]


@pytest.mark.slow
def test_rows_that_moved_and_a_seed_that_changed_have_their_answers(project: Project):
    project.endpoint.answers = counting()
    project.rows("a", "b")
    first = answers(project.run(RECORD, "--n=2", "--osmosis-seed=1"))
    project.rows("b", "new", "a")
    session = project.run(REPLAY, "--n=2", "--osmosis-seed=5")
    b, new, a = (answers(session)[at : at + 2] for at in (0, 2, 4))
    assert [*a, *b] == first and new == [None, None]


@each_mode
def test_what_is_missing_is_asked_and_recorded(project: Project, workers: int):
    project.endpoint.answers = counting()
    project.rows("a", "b")
    first = answers(project.run(RECORD, "--n=2", workers=workers))
    project.rows("a", "b", "c")
    second = answers(project.run(REPLAY, ASK, "--n=2", workers=workers))
    assert second[:4] == first and project.endpoint.requests == 6
    third = answers(project.run(REPLAY, "--n=2", workers=workers))
    assert third == second and project.endpoint.requests == 6


@pytest.mark.slow
def test_tries_that_failed_are_not_replayed_and_refusals_of_a_request_are(project: Project):
    project.endpoint.answers = lambda ask: (
        error_reply(400, "too long") if ask.row == "long"
        else error_reply(503, "later") if ask.attempt == 1
        else completion(ask.row)
    )  # fmt: skip
    project.rows("a", "long")
    first = project.run(RECORD)
    asked = project.endpoint.requests
    again = project.run(REPLAY)
    assert first.outcomes == again.outcomes == {"passed": 1, "failed": 1}
    assert "too long" in again.runs[1]["error"] and project.endpoint.requests == asked


@pytest.mark.slow
def test_replayed_and_live_runs_are_never_taken_for_each_other(project: Project):
    project.rows("a", "b")
    project.run(RECORD)
    assert "resuming" not in project.run(REPLAY).out
    names = sorted(path.name for path in (project.path / ".osmosis/runs").iterdir())
    kept = [name for name in names if not name.startswith(".")]
    assert kept == [KEPT, KEPT.replace("-m", ".replay-m")]
    assert "replay was not given" not in project.run("--osmosis-resume").mistake
    live = project.run("--osmosis-extend")
    assert live.report["summary"]["cached"] == 2 and project.endpoint.requests == 2
    project.write("taped/calls.jsonl", taped(project).replace('"content":"a"', '"content":"A"'))
    mistake = project.run(REPLAY, "--osmosis-resume").mistake
    assert "taped/calls.jsonl has changed" in mistake


OWN_CLIENT = """
import os

from openai import AsyncOpenAI, OpenAI

from osmosis_ai import record

settings = {"base_url": os.environ["OWN_URL"], "api_key": "placeholder", "max_retries": 0}
client = record(OpenAI(**settings))


def agent(question):
    messages = [{"role": "user", "content": question}]
    first = client.chat.completions.create(model="m", messages=messages)
    said = first.choices[0].message.content
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "sure?"}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    return "".join(part.choices[0].delta.content or "" for part in stream)


async def async_agent(question):
    async with record(AsyncOpenAI(**settings)) as client:
        messages = [{"role": "user", "content": question}]
        await client.chat.completions.create(model="m", messages=messages)
        stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
        return "".join([part.choices[0].delta.content or "" async for part in stream])
"""


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["agent", "async_agent"])
def test_a_client_that_record_returns(
    project: Project, monkeypatch: pytest.MonkeyPatch, agent: str
):
    numbers = iter(range(100))

    def answer(ask: Ask) -> Any:
        said = f"answer {next(numbers)}"
        return streamed(said) if ask.body.get("stream") else completion(said)

    project.endpoint.answers = answer
    project.write("own.py", OWN_CLIENT)
    project.rows("a", "b")
    monkeypatch.setenv("OWN_URL", project.endpoint.base_url)
    options = project.options("-n0", "--n=2", agent=f"own:{agent}", model=None, base_url=None)
    first = project.apart(*options, RECORD)
    assert [run["answer"] for run in first.runs] == [f"answer {n}" for n in (1, 3, 5, 7)]
    first = first.report["rows"]
    monkeypatch.setenv("OWN_URL", "http://127.0.0.1:1/v1")
    again = project.apart(*options, REPLAY).report["rows"]
    assert project.endpoint.requests == 8
    for before, now in zip(first, again, strict=True):
        for one, other in zip(before["runs"], now["runs"], strict=True):
            assert (one["answer"], one["llm_calls"]) == (other["answer"], other["llm_calls"])
    project.rows("changed", "b")
    missing = project.apart(*options, REPLAY).runs[0]["error"]
    assert 'messages[0] (user) was "a" and is "changed"' in missing


@pytest.mark.slow
def test_litellm_the_bridge_and_judges(project: Project, monkeypatch: pytest.MonkeyPatch):
    verdicts = iter(range(100))

    def answer(ask: Ask) -> Any:
        if ask.model == "gpt-4o-mini":
            return completion(f"{ask.row} {ask.attempt}")
        return completion(json.dumps({"score": next(verdicts) / 100, "explanation": "so"}))

    project.endpoint.answers = answer
    project.write("flow.py", FLOW)
    project.write("rewards.py", JUDGED)
    project.write("test_marked.py", MARKED)
    project.rows("a", "b")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_BASE", project.endpoint.base_url)
    options = project.options(
        "-n0", "--n=2", "--batch-size=4", "test_marked.py",
        agent="flow:Flow", eval_fn="rewards:judged", base_url=None, model="openai/gpt-4o-mini",
    )  # fmt: skip
    first = project.apart(*options, RECORD).report["rows"]
    assert project.endpoint.requests == 4 * 3 + 4 * 2
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE"):
        monkeypatch.delenv(name)
    again = project.apart(*options, REPLAY).report["rows"]
    figures = [
        [(run["answer"], run["scores"], run["reasons"]) for row in rows for run in row["runs"]]
        for rows in (first, again)
    ]
    assert figures[0] == figures[1] and len({*map(str, figures[0])}) == 8
    assert project.endpoint.requests == 4 * 3 + 4 * 2 and KEY not in taped(project)


MARKED = """
import pytest

from osmosis_ai import evaluate_rubric


@pytest.mark.osmosis(agent="flow:Flow", data="data.jsonl", n=2)
def test_kind(rollout):
    model = {"provider": "openai", "model": "gpt-5-mini"}
    rollout.record_score("kind", evaluate_rubric("Is it kind?", rollout.solution_str, model))
"""
FLOW = '''
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from osmosis_ai.rollout import AgentWorkflow, get_rollout_context


class Flow(AgentWorkflow):
    """Streams, as many libraries do."""

    async def run(self, ctx):
        here = get_rollout_context()
        plain = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(
            base_url=here.chat_completions_url, api_key=here.api_key, http_client=plain
        ) as client:
            stream = await client.chat.completions.create(
                model="gpt-9", messages=ctx.prompt, stream=True
            )
            said = "".join([part.choices[0].delta.content or "" async for part in stream])
        return [*ctx.prompt, {"role": "assistant", "content": said}]
'''


@pytest.mark.fault("the recording is empty, cut or damaged")
def test_a_damaged_file_is_refused_before_anything_is_sent(project: Project):
    project.rows("a", "b")
    project.run(RECORD)
    whole = taped(project)
    for damaged in (whole[:-20], whole.replace('{"json"', "<<<<<<< HEAD\n", 1)):
        project.write("taped/calls.jsonl", damaged)
        for option in (RECORD, REPLAY):
            session = project.run(option)
            assert re.search(r"taped/calls.jsonl, line \d+, is no recorded call", session.mistake)
    assert project.endpoint.requests == 2


@pytest.mark.fault("two sessions record into one folder")
def test_two_sessions_do_not_record_into_one_folder_at_once(project: Project):
    from pytest_osmosis.features.cassettes import CassetteSpec
    from pytest_osmosis.features.cassettes.folder_cassette import OpenFolder

    project.rows("a")
    other = OpenFolder(CassetteSpec(Path(project.path, "taped")))
    assert "another session records into it" in project.run(RECORD).mistake
    other.close()
    assert project.run(RECORD).ret == 0
