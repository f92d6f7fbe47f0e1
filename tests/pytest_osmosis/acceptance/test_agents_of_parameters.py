"""Callables with parameters for the evaluated model: asked through the bridge, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import Project

APP = """
import functools
import json
import urllib.request

import aiohttp


def ask(question, model, base_url, api_key, extra=None):
    body = {"model": model, "messages": [{"role": "user", "content": question}], **(extra or {})}
    request = urllib.request.Request(
        base_url + "/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        error.close()
        raise


def function(question, model, base_url, api_key):
    return ask(question, model, base_url, api_key)


def defaults(question, model="usual", base_url="http://127.0.0.1:9", api_key="none"):
    return ask(question, model, base_url, api_key)


def by_name(*, api_key, messages, model, base_url):
    return ask(messages[-1]["content"], model, base_url, api_key)


def behind(base_url, api_key, model, question):
    return ask(question, model, base_url, api_key)


async def asynchronous(row, base_url, api_key, model):
    headers = {"Authorization": f"Bearer {api_key}"}
    body = {"model": model, "messages": [{"role": "user", "content": row["user_prompt"]}]}
    async with aiohttp.ClientSession(headers=headers) as client:
        async with client.post(base_url + "/chat/completions", json=body) as reply:
            return (await reply.json())["choices"][0]["message"]


class Bot:
    def __call__(self, question, model, base_url, api_key):
        return ask(question, model, base_url, api_key)

    def reply(self, question, model, base_url, api_key):
        return ask(question, model, base_url, api_key)


class Made:
    def __init__(self, model, base_url, api_key):
        self.ask = functools.partial(ask, model=model, base_url=base_url, api_key=api_key)

    def __call__(self, question):
        return self.ask(question)


bot = Bot()
method = bot.reply
partial = functools.partial(ask, extra={"top_k": 5})


def leaks(question, model, base_url, api_key):
    import os
    assert api_key not in os.environ.values() and model == "a"
    return [{"role": "assistant", "content": ask(question, "other", base_url, api_key)}]


def fails(question, model, base_url, api_key):
    try:
        return ask(question, model, base_url, api_key)
    except urllib.error.HTTPError as error:
        raise RuntimeError("my client failed") from error


def excuses(question, model, base_url, api_key):
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    url = base_url + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        with error:
            return "Sorry: " + json.load(error)["error"]["message"]
"""


NAMES = (
    "function", "defaults", "by_name", "behind", "asynchronous", "Bot", "Made", "bot", "method",
    "partial",
)  # fmt: skip


@pytest.fixture
def app(project: Project) -> Project:
    """A project whose endpoint answers with the name of the model that it was asked for."""
    project.write("app.py", APP)
    project.endpoint.answers = lambda ask: ask.body["model"]
    return project


@each_mode
def test_every_kind_of_callable_asks_the_candidate_and_is_counted(app: Project, workers: int):
    app.rows({"user_prompt": "?", "ground_truth": "a"})
    agents = [f"--osmosis-agent=app:{name}" for name in NAMES]
    session = app.run(
        *agents, "--batch-size=3", "--osmosis-temperature=0.5", model="a", agent=None,
        workers=workers,
    )  # fmt: skip
    assert session.outcomes == {"passed": len(agents)}, session.out
    assert app.endpoint.requests == len(agents)
    for run in session.runs:
        assert (run["llm_calls"], run["tokens"], run["answer"]) == (1, 15, "a")
    assert session.report["config"]["model"] == "a"


def test_models_are_compared_by_it(app: Project):
    app.rows({"user_prompt": "?", "ground_truth": "b"}, {"user_prompt": "!", "ground_truth": "b"})
    models = ["--osmosis-model=a", "--osmosis-model=b"]
    session = app.run(*models, "--n=2", "--batch-size=4", agent="app:function", model=None)
    assert session.outcomes == {"failed": 4, "passed": 4}
    summaries = [each["summary"] for each in session.report["suites"]]
    assert [each["eval_fns"]["rewards:exact"]["mean"] for each in summaries] == [0.0, 1.0]


def test_sampling_reaches_it_and_the_name_in_the_body_is_replaced(app: Project):
    seen: list[Ask] = []
    app.endpoint.answers = lambda ask: seen.append(ask) or "x"
    app.rows("x")
    session = app.run("--osmosis-temperature=0.5", "--osmosis-seed=7", agent="app:leaks", model="a")
    assert session.outcomes == {"passed": 1}, session.out
    [ask] = seen
    assert (ask.body["model"], ask.body["temperature"], ask.body["seed"]) == ("a", 0.5, 7)


def test_its_calls_are_recorded_and_replayed(app: Project):
    app.rows({"user_prompt": "?", "ground_truth": "a"})
    given = {"agent": "app:function", "model": "a"}
    assert app.run("--osmosis-record=taped", **given).outcomes == {"passed": 1}
    again = app.run("--osmosis-replay=taped", "--osmosis-fresh", **given)
    assert again.outcomes == {"passed": 1} and app.endpoint.requests == 1
    conversation = app.path.joinpath("out.trajectories.jsonl").read_text()
    assert conversation.count('"role"') >= 2


@pytest.mark.parametrize("agent", ["fails", "excuses"])
def test_a_failure_of_the_endpoint_is_the_endpoints(app: Project, agent: str):
    app.rows({"user_prompt": "?", "ground_truth": "a"})
    session = app.run(agent=f"app:{agent}", model="a", base_url="http://127.0.0.1:9/v1")
    assert session.runs[0]["error_type"] == "provider"
    assert "127.0.0.1:9" in session.runs[0]["error"]


RESPONSES = """
import json
import urllib.request


def agent(question, model, base_url, api_key):
    request = urllib.request.Request(
        base_url + "/responses",
        json.dumps({"model": model, "input": question}).encode(),
        {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["output"][0]["content"][0]["text"]
    except urllib.error.HTTPError as error:
        error.close()
        raise
"""


@pytest.mark.fault(
    "an agent's client asks for responses or embeddings, and the endpoint or the provider has none"
)
def test_responses_are_compared_where_the_endpoint_has_them_and_else_stop_at_the_first_run(
    project: Project,
):
    project.write("app.py", RESPONSES)
    project.rows(*map(str, range(20)))
    session = project.run("--batch-size=1", agent="app:agent", model="a")
    assert (session.ret, project.endpoint.requests) == (1, 1)
    assert "the endpoint has no Responses API, which the agent's client asks for" in session.refusal

    def answer(ask: Ask) -> dict[str, Any]:
        part = {"type": "output_text", "text": ask.body["input"] if ask.model == "b" else "x"}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        output = [{"type": "message", "role": "assistant", "content": [part]}]
        return {"object": "response", "status": "completed", "usage": usage, "output": output}

    project.endpoint.routes = {"/responses": answer}
    models = ["--osmosis-model=a", "--osmosis-model=b"]
    session = project.run(
        *models, "--batch-size=4", "--osmosis-fresh", agent="app:agent", model=None
    )
    assert session.outcomes == {"failed": 20, "passed": 20}, session.out
    assert {run["tokens"] for run in session.runs} == {15}


def test_without_a_model_defaults_are_its_own_and_a_parameter_without_is_refused(
    app: Project,
):
    app.rows("a")
    none = {"model": None, "base_url": None}
    session = app.run(agent="app:function", **none)
    assert (session.ret, session.out) == (4, "")
    assert session.mistake.startswith("--osmosis-model is needed: ")
    session = app.run(agent="app:defaults", **none)
    assert session.outcomes == {"failed": 1}  # at its own address, where nothing listens
    assert session.report["config"]["model"] == "its own model"


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("question, base_url", "takes base_url without api_key"),
        ("question, api_key=None", "takes api_key without base_url"),
        ("question, model, base_url='x'", "takes base_url without api_key"),
        ("model, base_url, api_key", "an agent takes one required parameter"),
        ("question, other, model", "an agent takes one required parameter"),
    ],
)
def test_an_address_without_a_key_and_the_reverse_are_refused(
    project: Project, signature: str, said: str
):
    project.write("app.py", f"def agent({signature}): return ''\n")
    project.rows("a")
    session = project.run(agent="app:agent")
    assert (session.ret, session.out, project.endpoint.requests) == (4, "", 0)
    assert "--osmosis-agent 'app:agent': agent takes " in session.mistake
    assert said in session.mistake


COUNTING = """
import itertools

made = itertools.count()


class Agent:
    def __init__(self):
        self.number, self.turns = next(made), 0

    def __call__(self, question):
        self.turns += 1
        return {"made": self.number, "turns": self.turns}


agent = Agent()


class Failing:
    def __init__(self):
        raise LookupError("no drawer")

    def __call__(self, question):
        return question


class Needing:
    def __init__(self, drawer):
        pass

    def __call__(self, question):
        return question


class Contextual:
    def __init__(self):
        self.turns = 0

    async def __call__(self, ctx):
        self.turns += 1
        return ctx.complete([{"role": "assistant", "content": str(self.turns)}])
"""


def test_a_class_is_made_anew_for_each_run_and_an_instance_is_shared(project: Project):
    project.write("app.py", COUNTING)
    project.rows("a", "b")
    own = {"model": None, "base_url": None}
    session = project.run("--n=2", agent="app:Agent", **own)
    assert sorted(run["answer"] for run in session.runs) == [
        f'{{"made": {number}, "turns": 1}}' for number in (1, 2, 3, 4)
    ]  # the instance of the module was the first
    session = project.run("--n=2", agent="app:agent", **own)
    assert [run["answer"] for run in session.runs][-1] == '{"made": 0, "turns": 4}'
    session = project.run(agent="app:Contextual")
    assert {run["answer"] for run in session.runs} == {"1"}
    session = project.run(agent="app:Failing", **own)
    assert {run["error"] for run in session.runs} == {"LookupError: no drawer"}
    session = project.run(agent="app:Needing", **own)
    assert session.ret == 4
    assert "the class Needing needs 'drawer' to be made" in session.mistake


RETURNS = """
import asyncio
import threading

paid = []
lock = threading.Lock()


def wrong(question):
    with lock:
        paid.append(question)
        print("PAID", question)
    return {question}


def nothing(question):
    return None if question == "a" else question
"""


@pytest.mark.fault("an agent returns a type that is no answer")
@each_mode
def test_a_type_that_does_not_fit_stops_the_session_before_the_others_are_paid(
    project: Project, workers: int
):
    project.write("app.py", RETURNS)
    project.rows(*map(str, range(40)))
    own = {"model": None, "base_url": None}
    session = project.run("--batch-size=4", agent="app:wrong", workers=workers, **own)
    assert session.ret == 1
    shown = "wrong returned a value of type set, which JSON does not have; expected text, a message"
    assert shown in session.refusal
    assert len(session.runs) <= 8
    assert all(run["error_type"] == "agent" for run in session.runs)


@pytest.mark.parametrize("agent", ["reply", "Loop"])
def test_a_function_of_ctx_that_returns_no_result_stops_the_session(project: Project, agent: str):
    project.write(
        "app.py",
        """
from osmosis_ai.rollout import RolloutAgentLoop

async def reply(ctx):
    answer = await ctx.chat(list(ctx.request.messages))
    return answer.content

class Loop(RolloutAgentLoop):
    name = "loop"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        return await reply(ctx)
""",
    )
    project.rows(*map(str, range(40)))
    session = project.run("--batch-size=4", agent=f"app:{agent}", workers=0)
    assert session.ret == 1
    assert "returned str; expected RolloutResult" in session.refusal
    assert project.endpoint.requests <= 8


def test_none_is_the_error_of_one_run(project: Project):
    project.write("app.py", RETURNS)
    project.rows("a", "b")
    session = project.run(agent="app:nothing", model=None, base_url=None)
    assert session.outcomes == {"failed": 1, "passed": 1}
    assert "nothing returned None; expected text" in session.runs[0]["error"]
