from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.command import Osmosis

AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop
print("imported")

ADD = {"type": "function", "function": {"name": "add"}}

class Calculator(RolloutAgentLoop):
    name = "calculator"
    tools = [ADD]
    def get_tools(self, request):
        return self.tools
    async def run(self, ctx):
        raise AssertionError("validate runs nothing")

class Twice(Calculator):
    tools = [ADD, ADD]

class NotASchema(Calculator):
    tools = ["add"]

class Raising(Calculator):
    def get_tools(self, request):
        raise KeyError("no such tool")

class Leaving(Calculator):
    def get_tools(self, request):
        raise SystemExit(0)

class Sync(Calculator):
    def run(self, ctx):
        return None

class Generator(Calculator):
    async def run(self, ctx):
        yield None

class Failing(Calculator):
    def __init__(self):
        raise RuntimeError("no database")

agent_loop = Calculator()
nameless = Calculator()
nameless.name = ""
number = 3
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / "my_agent.py").write_text(AGENT)
    return directory


@pytest.fixture
def osmosis(osmosis: Osmosis, project: Path, monkeypatch: pytest.MonkeyPatch) -> Osmosis:
    """The command in the project, with a search path and modules of its own."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "my_agent", raising=False)
    return osmosis


@pytest.mark.parametrize("named", ["my_agent:agent_loop", "my_agent:Calculator"])
def test_a_good_agent_passes_every_check(osmosis: Osmosis, named: str):
    status, out, err = osmosis("validate", "-m", named)
    assert status == 0, err
    assert [line.split(maxsplit=2) for line in out.splitlines()] == [
        ["ok", "loads", named],
        ["ok", "name", "'calculator'"],
        ["ok", "get_tools", "tools: 1"],
        ["ok", "run", "is async"],
    ]
    assert "imported" in err
    assert "warning: tools[0].function.description is missing" in err
    assert osmosis("validate", "-v", "-m", named)[1].splitlines()[4] == "  add()"


def test_the_checks_are_one_json_document(osmosis: Osmosis):
    status, out, err = osmosis("validate", "--module", "my_agent:agent_loop", "--json")
    assert status == 0, err
    document = json.loads(out)
    assert (document["valid"], document["name"], document["tools"]) == (True, "calculator", 1)
    assert [each["code"] for each in document["warnings"]] == ["MISSING_FUNCTION_DESCRIPTION"]


@pytest.mark.parametrize(
    ("attribute", "place", "sentence"),
    [
        ("Twice", "get_tools", "two tools are named 'add'"),
        ("NotASchema", "tools[0]", "is str"),
        ("Raising", "get_tools", "raised KeyError"),
        ("Leaving", "get_tools", "raised SystemExit"),
        ("Sync", "run", "must be `async def run(self, ctx)`"),
        ("Generator", "run", "must be `async def run(self, ctx)`"),
        ("nameless", "name", "non-empty string"),
        ("Failing", "-m/--module 'my_agent:Failing'", "no database"),
        ("number", "-m/--module 'my_agent:number'", "RolloutAgentLoop"),
        ("agnet_loop", "-m/--module 'my_agent:agnet_loop'", "agent_loop"),
    ],
)
def test_what_is_wrong_is_named_and_the_status_is_1(
    osmosis: Osmosis, attribute: str, place: str, sentence: str
):
    status, out, err = osmosis("validate", "-m", f"my_agent:{attribute}")
    assert status == 1
    checks = {line.split()[1]: line for line in out.splitlines()}
    check = "get_tools" if place.startswith("tools") else place
    assert [*checks] == ([] if place.startswith("-m") else ["loads", "name", "get_tools", "run"])
    assert [name for name, line in checks.items() if line.startswith("FAILED")] == (
        [check] if checks else []
    )
    assert sentence in checks.get(check, sentence)
    assert f"{place}: " in err and sentence in err
    assert "osmosis_cli/" not in err and "pytest_osmosis/" not in err


def test_a_failed_check_with_json_is_one_error_document(osmosis: Osmosis):
    error = osmosis.failure("validate", "-m", "my_agent:Sync")
    assert error["code"] == "invalid"
    assert [each["code"] for each in error["details"]["errors"]] == ["RUN_NOT_ASYNC"]


@pytest.mark.fault("an import never ends")
@pytest.mark.parametrize("command", ["validate", "serve --local", "test -d rows.jsonl"])
def test_an_import_that_hangs_is_refused_after_its_limit(
    osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    (tmp_path / "hangs.py").write_text("import threading\nthreading.Event().wait()\n")
    (tmp_path / "rows.jsonl").write_text('{"system_prompt": "", "user_prompt": "a"}\n')
    monkeypatch.chdir(tmp_path)
    status, _, err = osmosis(*command.split(), "-m", "hangs:agent", "--import-timeout=0.2")
    assert status in (1, 2)
    assert "was not done after 0.2 s (--import-timeout gives it more, 0 all it takes)" in err
    assert "hangs.py" in err and "line 2" in err and "Traceback" not in err


WORKFLOW = """
from osmosis_ai.rollout import AgentWorkflow, Grader

class Asks(AgentWorkflow):
    async def run(self, ctx):
        raise AssertionError("validate runs nothing")
"""
GRADER = """
class Right(Grader):
    {} grade(self, ctx):
        ctx.set_reward(1.0)
"""


@pytest.mark.parametrize(
    ("grader", "verdict", "detail"),
    [
        ("", "ok", "none: give eval functions, --eval-fn"),
        (GRADER.format("async def"), "ok", "Right"),
        (GRADER.format("def"), "FAILED", "must be `async def grade(self, ctx)`"),
    ],
)
def test_a_workflow_is_checked_with_its_grader(
    osmosis: Osmosis, project: Path, grader: str, verdict: str, detail: str
):
    file = f"main_{len(grader)}.py"
    (project / file).write_text(WORKFLOW + grader)
    status, out, _ = osmosis("validate", "-m", file)
    assert [line.split(maxsplit=2) for line in out.splitlines()] == [
        ["ok", "loads", file],
        ["ok", "workflow", "Asks"],
        [verdict, "grader", detail],
        ["ok", "run", "is async"],
    ]
    assert status == (verdict != "ok")


def test_a_program_is_not_checked(osmosis: Osmosis):
    message = osmosis.error("validate", "-m", "cmd:cat")
    assert "a program is checked by running it: osmosis test -m" in message
