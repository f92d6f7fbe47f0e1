"""Functions that know nothing of this project, evaluated as they are."""

from __future__ import annotations

import gc

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.pages.blocks import ROOT
from tests.support.modes import each_mode
from tests.support.project import Project

APP = """
import threading

all_in_flight = threading.Barrier(4, timeout=30)


def repeat(question: str) -> str:
    return question


def meet(question: str) -> str:
    all_in_flight.wait()
    return question


def nothing(question):
    pass


def fail(question):
    raise LookupError(f"no drawer for {question}")
"""

ONE_FUNCTION = """
from os.path import join


def repeat(question):
    return question


def score(solution_str, ground_truth):
    return 1.0
"""


@each_mode
def test_a_function_is_evaluated_without_a_model(project: Project, workers: int) -> None:
    project.write("app.py", APP)
    project.rows("a", "b")
    session = project.run(f"-n{workers}", agent="app:repeat", model=None, base_url=None)
    assert session.ret == 0 and session.outcomes == {"passed": 2}, session.out
    assert session.report["config"]["model"] == "none"
    assert [each["answer"] for each in session.runs] == ["a", "b"]


def test_synchronous_functions_run_at_once_as_many_as_the_batch_size(project: Project) -> None:
    project.write("app.py", APP)
    project.rows("a", "b", "c", "d")
    session = project.run("-n0", "--batch-size=4", agent="app:meet", model=None, base_url=None)
    assert session.outcomes == {"passed": 4}, session.out


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("name", [
    "function", "asynchronous", "chain", "bot", "method", "partial", "streams", "blocks",
    "gives_json", "raises",
])  # fmt: skip
def test_agents_as_people_have_them_are_recorded(project: Project, monkeypatch, name: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", project.endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-agent-0123456789")
    project.rows("a")
    agent = f"{ROOT / 'examples/plain_agents/agents.py'}:{name}"
    session = project.run("-n0", agent=agent, eval_fn="includes", model=None, base_url=None)
    assert session.outcomes == {"failed" if name == "raises" else "passed": 1}, session.out
    assert session.runs[0]["tokens"] > 0 and session.runs[0]["llm_calls"] == 1
    gc.collect()  # clients that nobody closes are of the agents' modules


def test_a_file_alone_is_the_one_function_that_it_defines(project: Project) -> None:
    project.write("app.py", ONE_FUNCTION)
    project.rows("a")
    session = project.run(agent="app.py", model=None, base_url=None)
    assert session.outcomes == {"passed": 1}, session.out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing", "nothing returned None; expected text, a message"),
        ("fail", "LookupError: no drawer for a"),
    ],
)
def test_its_mistake_is_the_error_of_the_agent(project: Project, name: str, told: str) -> None:
    project.write("app.py", APP)
    project.rows("a")
    session = project.run(agent=f"app:{name}", model=None, base_url=None)
    [each] = session.runs
    assert session.ret == 1 and each["error_type"] == "agent" and told in each["error"]


def test_the_commands_take_it_and_serving_it_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("functions3.py", APP)
    project.rows("a")
    monkeypatch.chdir(project.path)
    assert run(cli, ["validate", "-m", "functions3:repeat"]) == 0
    assert run(cli, ["test", "-m", "functions3:repeat", "-d", "data.jsonl", "--model", "m",
                     "--base-url", project.endpoint.base_url]) == 0  # fmt: skip
    assert "1 completed" in capsys.readouterr().out
    assert run(cli, ["serve", "-m", "functions3:repeat", "--skip-register"]) != 0
    assert "repeat never asks the trainer's model" in capsys.readouterr().err


AGENTS = """
async def agent(ctx):
    messages = list(ctx.request.messages)
    answer = await ctx.chat(messages)
    return ctx.complete([*messages, answer.message])


def plain(ctx):
    return ctx.complete([])


async def judge(messages, ground_truth, metadata):
    return 1.0
"""


def test_an_async_function_is_evaluated(project: Project) -> None:
    project.write("functions.py", AGENTS)
    project.rows("a", "b")
    session = project.run(agent="functions:agent", model="echo")
    assert session.ret == 0 and session.outcomes == {"passed": 2}, session.out
    assert [row["runs"][0]["scores"] for row in session.report["rows"]] == [
        {"rewards:exact": 1.0}, {"rewards:exact": 1.0},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("plain", "plain takes a context: declare it `async def`"),
        ("judge", "judge takes (messages, ground_truth, metadata); an agent takes one required "
         "parameter: "),
    ],
)  # fmt: skip
def test_another_function_is_refused(project: Project, name: str, told: str) -> None:
    project.write("functions.py", AGENTS)
    project.rows("a")
    session = project.run(agent=f"functions:{name}")
    assert session.ret == 4 and f"--osmosis-agent 'functions:{name}': {told}" in session.mistake


def test_the_commands_take_an_async_function(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("functions2.py", AGENTS)
    project.rows("a")
    monkeypatch.chdir(project.path)
    assert run(cli, ["validate", "-m", "functions2:agent"]) == 0
    told = capsys.readouterr().out
    assert "functions2:agent" in told and "'agent'" in told
    assert run(cli, ["validate", "-m", "functions2:judge"]) == 1
    assert "judge takes (messages, ground_truth, metadata)" in capsys.readouterr().out
    url = project.endpoint.base_url
    words = ["-m", "functions2:agent", "-d", "data.jsonl", "--model", "echo", "--base-url", url]
    assert run(cli, ["test", *words]) == 0
    assert "1 completed" in capsys.readouterr().out
