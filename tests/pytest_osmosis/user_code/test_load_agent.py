"""A file alone names the one agent that it defines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_osmosis.user_code.import_object import ImportingError
from pytest_osmosis.user_code.load_agent import load_agent, load_agent_loop, load_grading

HEAD = """
from abc import abstractmethod
from osmosis_ai.rollout import AgentWorkflow, Grader, RolloutAgentLoop
def helper(messages, ground_truth): ...
"""
WORKFLOW = """
class {name}(AgentWorkflow):
    async def run(self, ctx):
        return []
"""
LOOP = """
class {name}(RolloutAgentLoop):
    name = "loop"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        return ctx.complete([])
"""
ABSTRACT = """
class Base(AgentWorkflow):
    @abstractmethod
    def prompt(self): ...
"""


def loaded(folder: Path, text: str) -> str:
    """The name of the class of the agent that a file's name alone stands for."""
    file = folder / "rollout.py"
    file.write_text(HEAD + text)
    agent = load_agent("rollout.py", roots=[folder]).agent
    inner = getattr(agent, "workflow", None) or getattr(agent, "loop", None)
    return type(inner).__name__


@pytest.mark.parametrize(
    "text",
    [
        WORKFLOW.format(name="Chosen"),
        LOOP.format(name="Chosen"),
        ABSTRACT + WORKFLOW.format(name="Chosen").replace("AgentWorkflow", "Base")
        + "    def prompt(self): ...\n",
        LOOP.format(name="Chosen") + "agent_loop = Chosen()\n",
        LOOP.format(name="Other") + LOOP.format(name="Chosen") + "agent_loop = Chosen()\n",
        WORKFLOW.format(name="Chosen") + "Again = Chosen\n",
    ],
    ids=["workflow", "loop", "of an abstract class", "instance", "instance of two", "two names"],
)  # fmt: skip
def test_a_file_alone_is_the_agent_that_it_defines(tmp_path: Path, text: str):
    assert loaded(tmp_path, text) == "Chosen"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "--osmosis-agent 'rollout.py': defines no agent loop, no workflow and no function; "
            "name what is to run: rollout.py:NAME",
        ),
        (
            WORKFLOW.format(name="B") + WORKFLOW.format(name="A"),
            "--osmosis-agent 'rollout.py': has several agents (A, B); name one: rollout.py:A",
        ),
    ],
)
def test_none_or_several_are_reported(tmp_path: Path, text: str, message: str):
    with pytest.raises(ImportingError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value) == message


GRADER = """
class {name}(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0)
"""
IN_MAIN = """
from osmosis_ai.rollout.backend.local import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.types import AgentWorkflowConfig
from parts import Chosen, Graded, config

def main():
    return create_rollout_server(backend=LocalBackend(workflow=Chosen, grader=Graded))
"""
AT_TOP = (
    IN_MAIN.replace("from parts", "from parts import Other\nfrom parts")
    + """
app = create_rollout_server(
    backend=LocalBackend(workflow=Chosen, workflow_config=config, grader=Graded),
    configure_logging=False,
)
"""
)


@pytest.mark.parametrize(
    ("text", "name"),
    [(IN_MAIN, "rollout.py"), (AT_TOP, "rollout.py"), (AT_TOP, "rollout.py:app")],
    ids=["classes", "a server", "a server by its name"],
)
def test_a_file_that_serves_a_workflow_of_another_module_is_that_workflow(
    tmp_path: Path, text: str, name: str, monkeypatch: pytest.MonkeyPatch
):
    parts = HEAD + WORKFLOW.format(name="Chosen") + WORKFLOW.format(name="Other")
    parts += GRADER.format(name="Graded") + GRADER.format(name="Unused")
    parts += "\nfrom osmosis_ai.rollout import AgentWorkflowConfig\n"
    parts += "config = AgentWorkflowConfig(name='given')\n"
    (tmp_path / "parts.py").write_text(parts)
    (tmp_path / "rollout.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "parts", raising=False)
    found = load_agent(name, roots=[tmp_path])
    monkeypatch.delitem(sys.modules, "parts")
    workflow = found.agent.workflow
    assert (type(workflow).__name__, workflow.config.name) == ("Chosen", "given")
    grading = load_grading(None, found, agent=name, roots=[tmp_path])
    assert grading is not None
    assert grading.name == "Graded"


def test_of_several_backends_one_must_be_named(tmp_path: Path):
    text = WORKFLOW.format(name="Chosen") + WORKFLOW.format(name="Other")
    text += "from osmosis_ai.rollout import LocalBackend\n"
    text += "one, two = (LocalBackend(workflow=each) for each in (Chosen, Other))\n"
    with pytest.raises(ImportingError, match=r"has several agents \(one, two\); name one: "):
        loaded(tmp_path, text)
    found = load_agent("rollout.py:two", roots=[tmp_path])
    assert type(found.agent.workflow).__name__ == "Other"


def test_a_workflow_in_the_place_of_a_loop_is_refused_with_what_runs_it(tmp_path: Path):
    (tmp_path / "rollout.py").write_text(HEAD + WORKFLOW.format(name="Chosen"))
    with pytest.raises(ImportingError) as raised:
        load_agent_loop("rollout.py:Chosen", option="-m", roots=[tmp_path])
    assert str(raised.value) == (
        "-m 'rollout.py:Chosen': Chosen is a workflow: evaluate it with `osmosis eval`, serve it "
        "with create_rollout_server; expected a RolloutAgentLoop here"
    )


def test_a_workflow_that_its_backend_cannot_make_is_reported_with_the_users_frames(tmp_path: Path):
    text = WORKFLOW.format(name="Chosen") + "    def __init__(self, config):\n        1 / 0\n"
    text += "from osmosis_ai.rollout import LocalBackend\nbackend = LocalBackend(workflow=Chosen)\n"
    with pytest.raises(ImportingError) as raised:
        loaded(tmp_path, text)
    message = str(raised.value)
    assert message.startswith("--osmosis-agent 'rollout.py:backend': what its backend runs cannot")
    assert message.endswith("ZeroDivisionError: division by zero")
    assert "osmosis_ai" not in message
