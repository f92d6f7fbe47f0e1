"""`async def agent(ctx)`, evaluated and looked at by the commands."""

from __future__ import annotations

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.support.project import Project

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
