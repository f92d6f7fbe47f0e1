"""A file alone names the one agent that it defines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_osmosis.user_code.import_object import ImportingError
from pytest_osmosis.user_code.load_agent import load_agent
from pytest_osmosis.user_code.user_hooks import UserHooks

HEAD = """
from abc import abstractmethod
from osmosis_ai.rollout import AgentWorkflow, Grader, RolloutAgentLoop
async def helper(ctx): ...
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
    agent = load_agent("rollout.py", roots=[folder], hooks=UserHooks()).agent
    inner = getattr(agent, "_workflow", None) or getattr(agent, "_loop", None)
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
    ("text", "told"),
    [
        (
            "",
            "--osmosis-agent 'rollout.py': defines no agent loop and no workflow; "
            "name what is to run: rollout.py:NAME",
        ),
        (
            WORKFLOW.format(name="B") + WORKFLOW.format(name="A"),
            "--osmosis-agent 'rollout.py': has several agents (A, B); name one: rollout.py:A",
        ),
    ],
)
def test_none_or_several_are_told(tmp_path: Path, text: str, told: str):
    with pytest.raises(ImportingError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value) == told
