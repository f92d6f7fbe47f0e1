"""Agents that a function makes: `--osmosis-agent "app:make()"`, called for each run."""

from __future__ import annotations

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project

APP = """
import functools
import itertools
import json
import urllib.request

from osmosis_ai.rollout import AgentWorkflow

made = itertools.count()


class State:
    def __init__(self):
        self.number, self.turns = next(made), 0

    def __call__(self, messages):
        self.turns += 1
        return f"{self.number} {self.turns} {messages[0]['content']}"


def stateful():
    return State()


def contextual():
    turns = []

    async def reply(ctx):
        turns.append(1)
        answer = await ctx.chat([*ctx.request.messages])
        return ctx.complete([{**answer.message, "content": f"{answer.content} {len(turns)}"}])

    return reply


def ask(question, *, model, base_url, api_key):
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        base_url + "/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def bridged(model, base_url, api_key):
    bound = functools.partial(ask, model=model, base_url=base_url, api_key=api_key)
    return lambda question: bound(question)


def unbound():
    return ask


def number():
    return 5


def raises():
    raise LookupError("no drawer")


def needs(drawer):
    return ask


def half(base_url):
    return ask


async def later():
    return ask


def of_context(model, base_url, api_key):
    return contextual()


def late(model, base_url, api_key):
    return {5}


class Workflow(AgentWorkflow):
    async def run(self, ctx):
        return ctx.prompt


def workflow():
    return Workflow()


constant = 5
"""


@pytest.fixture
def app(project: Project) -> Project:
    project.write("app.py", APP)
    project.endpoint.answers = lambda ask: ask.body["model"]
    return project


@each_mode
def test_an_agent_is_made_for_each_run_and_asks_the_candidate(app: Project, workers: int):
    app.rows({"user_prompt": "?", "ground_truth": "a"})
    agents = [f"--osmosis-agent=app:{name}()" for name in ("bridged", "unbound")]
    session = app.run(*agents, "--batch-size=2", model="a", agent=None, workers=workers)
    assert session.outcomes == {"passed": 2}, session.out
    assert {(run["llm_calls"], run["tokens"], run["answer"]) for run in session.runs} == {
        (1, 15, "a")
    }


def test_its_state_is_that_of_one_run_and_it_is_taken_for_what_it_makes(app: Project):
    app.rows("a", "b")
    own = {"model": None, "base_url": None}
    session = app.run("--n=2", agent="app:stateful()", **own)
    assert sorted(run["answer"] for run in session.runs) == [
        f"{number} 1 Answer." for number in (1, 2, 3, 4)
    ]  # the first was made to see what it is
    session = app.run("--n=2", agent="app:contextual()", model="a")
    assert {run["answer"] for run in session.runs} == {"a 1"}
    assert {run["tokens"] for run in session.runs} == {15}


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("number()", "made an int; expected a function"),
        ("raises()", "raises() made no agent"),
        ("needs()", "needs needs drawer: a function that makes an agent takes nothing, or model"),
        ("half()", "half takes base_url without api_key"),
        ("later()", "later is `async def`: make the agent in a plain function"),
        ("State()", "State is a class, made anew for each run: name it without ()"),
        ("constant()", "which cannot be called"),
        ("workflow()", "Workflow is a workflow"),
        ("stateful", "one that makes an agent is named stateful()"),
        ("stateful(1)", "is called without arguments: write app:stateful()"),
        ("missing()", "module 'app' has no 'missing'"),
    ],
)
def test_what_makes_no_agent_is_refused(app: Project, agent: str, said: str):
    app.rows("a")
    session = app.run(agent=f"app:{agent}")
    assert (session.ret, session.out, app.endpoint.requests) == (4, "", 0)
    assert f"--osmosis-agent 'app:{agent.removesuffix('()')}" in session.mistake
    assert said in session.mistake
    if agent == "raises()":
        assert "LookupError: no drawer" in session.mistake and "app.py" in session.mistake


@pytest.mark.parametrize(
    ("agent", "said"),
    [("late()", "made a set; expected a function"), ("of_context()", "leave one of the two out")],
)
def test_what_is_known_of_a_run_alone_stops_the_session_at_the_first(
    app: Project, agent: str, said: str
):
    app.rows(*map(str, range(20)))
    session = app.run(agent=f"app:{agent}", model="a")
    assert session.ret == 1 and said in session.refusal
    assert app.endpoint.requests == 0 and len(session.runs) < 20
