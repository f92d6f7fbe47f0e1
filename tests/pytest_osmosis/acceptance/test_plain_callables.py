"""Functions that know nothing of this project, evaluated as they are."""

from __future__ import annotations

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.pages.blocks import ROOT
from tests.support.endpoints import completion, streamed
from tests.support.modes import each_mode
from tests.support.project import Project

APP = """
import threading

all_in_flight = threading.Barrier(4, timeout=30)


def repeat(question: str) -> str:
    return question


class Made:
    async def __call__(self, ctx):
        return ctx.complete([])


def meet(question: str) -> str:
    all_in_flight.wait()
    return question
"""


@each_mode
def test_a_function_is_evaluated_without_a_model(project: Project, workers: int):
    project.write("app.py", APP)
    project.rows("a", "b")
    session = project.run(f"-n{workers}", agent="app:repeat", model=None, base_url=None)
    assert session.ret == 0 and session.outcomes == {"passed": 2}, session.out
    assert session.report["config"]["model"] == "its own model"
    assert [each["answer"] for each in session.runs] == ["a", "b"]
    project.write("one.py", "from os.path import join\ndef same(question): return question\n")
    alone = project.run(f"-n{workers}", agent="one.py", model=None, base_url=None)
    assert alone.outcomes == {"passed": 2}, alone.out  # the one function that the file defines


def test_synchronous_functions_run_at_once_as_many_as_the_batch_size(project: Project):
    project.write("app.py", APP)
    project.rows("a", "b", "c", "d")
    session = project.run("-n0", "--batch-size=4", agent="app:meet", model=None, base_url=None)
    assert session.outcomes == {"passed": 4}, session.out


NAMES = (
    "function", "asynchronous", "chain", "bot", "method", "partial", "streams", "blocks",
    "gives_json", "raises",
)  # fmt: skip


def test_agents_as_people_have_them_are_recorded(project: Project, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", project.endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-agent-0123456789")
    project.endpoint.answers = lambda ask: (
        streamed("yes") if ask.body.get("stream") else completion("yes")
    )
    project.rows("yes")
    path = ROOT / "examples/plain_agents/agents.py"
    agents = [f"--osmosis-agent={path}:{name}" for name in NAMES]
    own = {"agent": None, "eval_fn": "includes", "model": None, "base_url": None}
    session = project.apart(*project.options("-n0", *agents, **own))
    assert session.outcomes == {"failed": 1, "passed": len(NAMES) - 1}, session.out
    for each in session.runs:
        assert each["tokens"] > 0 and each["llm_calls"] == 1


def test_the_commands_take_it_and_serving_it_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    project.write("functions3.py", APP)
    project.rows("a")
    monkeypatch.chdir(project.path)
    assert run(cli, ["validate", "-m", "functions3:repeat"]) == 0
    assert run(cli, ["validate", "-m", "functions3:Made"]) == 0
    asked = ["test", "-m", "functions3:repeat", "-d", "data.jsonl"]
    assert run(cli, asked) == 0
    assert "1 completed" in capsys.readouterr().out
    assert run(cli, [*asked, "--model", "m"]) == 2
    assert "--model cannot reach functions3:repeat" in capsys.readouterr().err
    assert run(cli, ["serve", "-m", "functions3:repeat", "--skip-register"]) != 0
    assert "repeat never asks the trainer's model" in capsys.readouterr().err
