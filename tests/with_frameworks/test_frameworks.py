"""Agents of other libraries, as docs/guides/frameworks.md has them, with the libraries themselves.

They are in the environment of `tox -e frameworks` alone; one that is not installed is skipped.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import Ask, Endpoint, completion, error_reply
from tests.support.project import NO_NEIGHBOURS, Project

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "frameworks.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", PAGE.read_text(), re.S | re.M))
MODULES = {
    "OpenAI": "openai", "Anthropic": "anthropic", "Pydantic AI": "pydantic_ai",
    "LangGraph": "langchain.agents", "OpenAI Agents SDK": "agents", "smolagents": "smolagents",
    "DSPy": "dspy", "LlamaIndex": "llama_index.llms.openai_like",
    "AutoGen": "autogen_agentchat", "Google ADK": "google.adk", "Strands": "strands",
    "LiteLLM": "litellm",
}  # fmt: skip
REFUSED = {"busy": (429, "slow down"), "broken": (500, "upstream broke")}


def answer(ask: Ask) -> Any:
    """The right answer of model a, a wrong one of others, in the form that a library wants."""
    words = str(ask.messages)
    for word, (status, said) in REFUSED.items():
        if word in words:
            return [error_reply(status, said, headers={"x-should-retry": "false"})]
    found = "right" if ask.model == "a" else "wrong"
    if "[[ ## answer ## ]]" in words:
        return f"[[ ## answer ## ]]\n{found}\n\n[[ ## completed ## ]]"
    tools = [tool["function"]["name"] for tool in ask.body.get("tools") or ()]
    if "final_answer" in tools:
        function = {"name": "final_answer", "arguments": f'{{"answer": "{found}"}}'}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return completion(message, finish_reason="tool_calls")
    return found


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_NEIGHBOURS)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with Endpoint(answer) as endpoint:
        yield Project(pytester, endpoint)


def need(name: str) -> None:
    try:
        found = importlib.util.find_spec(MODULES[name])
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"{MODULES[name]} is not installed")


def session_of(project: Project, *more: str, agent: str = "app:agent") -> Any:
    given: dict[str, Any] = {"agent": agent, "model": None}
    return project.apart(*project.options("-n0", "--batch-size=8", *more, **given))


def test_every_library_of_the_page_is_tried():
    assert SECTIONS.keys() == MODULES.keys()
    for name, code in SECTIONS.items():
        lines = [line for line in code.splitlines() if line.strip()]
        assert len(lines) <= 10, name


@pytest.mark.parametrize("name", MODULES)
def test_models_are_compared_and_failures_are_the_endpoints(project: Project, name: str):
    need(name)
    project.write("app.py", SECTIONS[name])
    project.rows(
        *({"user_prompt": f"Question {row}?", "ground_truth": "right"} for row in range(18)),
        {"user_prompt": "Are you busy?", "ground_truth": "right"},
        {"user_prompt": "Are you broken?", "ground_truth": "right"},
    )
    session = session_of(project, "--n=2", "--osmosis-model=a", "--osmosis-model=b")
    rows = session.report["rows"]
    runs = [{**run, "row_index": row["row_index"]} for row in rows for run in row["runs"]]
    assert len(runs) == 80, session.out + session.err
    failed = {run["row_index"] for run in runs if run["error_type"] == "provider"}
    assert failed == {18, 19}, [run["error"] for run in runs if run["error"]]
    kinds = {(run["row_index"], run["error_kind"]) for run in runs if run["error"]}
    assert kinds == {(18, "rate_limited"), (19, "overloaded")}
    answered = [run for run in runs if run["row_index"] < 18]
    assert not [run["error"] for run in answered if run["error"]]
    for run in answered:
        assert run["llm_calls"] == 1 and run["tokens"] == 15, run
    means = [
        suite["summary"]["eval_fns"]["rewards:exact"]["mean"] for suite in session.report["suites"]
    ]
    assert means == [1.0, 0.0], session.out
    assert project.endpoint.max_in_flight <= 8


SHARED = {
    "Strands": """
from strands import Agent
from strands.models.openai import OpenAIModel


def bot(model, base_url, api_key):
    given = {"base_url": base_url, "api_key": api_key}
    llm = OpenAIModel(client_args=given, model_id=model)
    return Agent(model=llm, callback_handler=None)


def say(bot, question):
    return str(bot(question))
""",
    "AutoGen": """
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient as Client


def bot(model, base_url, api_key):
    names = ("vision", "function_calling", "json_output", "structured_output")
    info = ModelInfo(family="unknown", **dict.fromkeys(names, False))
    client = Client(model=model, base_url=base_url, api_key=api_key, model_info=info)
    return AssistantAgent("bot", client)


def say(bot, question):
    return asyncio.run(bot.run(task=question)).messages[-1].content
""",
}
FORMS = """

class Anew:
    def __init__(self, model, base_url, api_key):
        self.bot = bot(model, base_url, api_key)

    def __call__(self, question):
        return say(self.bot, question)


def kept(question):
    import os
    return say(known.setdefault("bot", bot("a", os.environ["OWN_URL"], "k")), question)


known = {}
"""


@pytest.mark.parametrize("name", SHARED)
def test_an_agent_at_module_level_keeps_what_was_said_and_a_class_does_not(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
):
    need(name)
    monkeypatch.setenv("OWN_URL", project.endpoint.base_url)
    project.write("app.py", SHARED[name] + FORMS)
    project.rows(*({"user_prompt": f"Question {n}?", "ground_truth": "right"} for n in range(6)))

    def most_questions() -> int:
        asked = [sum(m["role"] == "user" for m in ask.messages) for ask in project.endpoint.seen]
        project.endpoint.seen.clear()
        return max(asked)

    session = session_of(project, "--osmosis-model=a", agent="app:Anew")
    assert session.outcomes == {"passed": 6}, session.out
    assert most_questions() == 1
    one_by_one: dict[str, Any] = {"agent": "app:kept", "model": None, "base_url": None}
    project.apart(*project.options("-n0", "--batch-size=1", **one_by_one))
    assert most_questions() > 1
