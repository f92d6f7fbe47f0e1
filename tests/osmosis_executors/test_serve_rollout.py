"""The file of a rollout as a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from osmosis_executors.serve_rollout import application, main

HEAD = "from osmosis_ai.rollout import AgentWorkflow, Grader, RolloutAgentLoop\n"
WORKFLOW = "class Flow(AgentWorkflow):\n    async def run(self, ctx): return []\n"
GRADER = "class Right(Grader):\n    async def grade(self, ctx): ctx.set_reward(1.0)\n"
LOOP = (
    "class Loop(RolloutAgentLoop):\n    name = 'x'\n    def get_tools(self, request): return []\n"
    "    async def run(self, ctx): return ctx.complete([])\n"
)


@pytest.mark.parametrize(
    ("text", "server"), [(WORKFLOW + GRADER, "RolloutServer"), (LOOP, "RolloutApp")]
)
def test_a_file_is_served_by_what_its_agent_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, server: str
):
    file = f"served_by_{server.lower()}.py"
    (tmp_path / file).write_text(HEAD + text)
    monkeypatch.chdir(tmp_path)
    assert type(application(file)).__name__ == server


def test_a_file_that_cannot_be_served_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "served_by_nothing.py").write_text(HEAD + WORKFLOW)
    monkeypatch.chdir(tmp_path)
    assert main("served_by_nothing.py") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err == "served_by_nothing.py: defines no Grader, so that no rollout has a reward\n"
    )
