"""Rows whose column `metadata` holds a task, and rows without a system prompt, by each agent."""

from __future__ import annotations

import json

import pytest

from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import Project

SUMS = """
from osmosis_ai.rollout import AgentWorkflow, Grader


class Adds(AgentWorkflow):
    async def run(self, ctx):
        assert set(ctx.metadata) == {"left", "right"}, ctx.metadata
        total = ctx.metadata["left"] + ctx.metadata["right"]
        if ctx.metadata["left"] == 2:  # wrong once
            total += 1
        return [*ctx.prompt, {"role": "assistant", "content": str(total)}]


class Checks(Grader):
    async def grade(self, ctx):
        assert set(ctx.metadata) == {"left", "right"}, ctx.metadata
        assert ctx.label in (None, str(sum(ctx.metadata.values()))), ctx.label
        answer = ctx.sample.messages[-1]["content"]
        ctx.set_reward(float(answer == str(sum(ctx.metadata.values()))))


def of_the_row(row):
    return str(sum(row["metadata"].values()))


async def asks(ctx):
    reply = await ctx.chat(ctx.request.messages)
    return ctx.complete([*ctx.request.messages, reply.message], reward=1.0)
"""


def write(project: Project, *rows: object) -> None:
    project.write("sums.py", SUMS)
    project.write("data.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))


def task(left: int) -> dict[str, int]:
    return {"left": left, "right": left + 1}


@each_mode
@pytest.mark.parametrize("as_text", [False, True])
def test_a_workflow_and_its_grader_are_given_the_task_and_nothing_beside_it(
    project: Project, workers: int, as_text: bool
):
    tasks = [json.dumps(task(left)) if as_text else task(left) for left in range(4)]
    truths = [{"ground_truth": str(2 * left + 1)} if as_text else {} for left in range(4)]
    pairs = zip(tasks, truths, strict=True)
    write(project, *({"metadata": value, **truth} for value, truth in pairs))
    session = project.run(workers=workers, agent="sums:Adds", eval_fn=None)
    assert [run["scores"]["reward"] for run in session.runs] == [1.0, 1.0, 0.0, 1.0]
    assert session.report["summary"]["eval_fns"]["reward"]["mean"] == 0.75


def test_a_function_of_the_row_needs_no_question(project: Project):
    write(project, *({"metadata": task(left)} for left in range(3)))
    session = project.run(agent="sums:of_the_row", eval_fn="includes", model=None, base_url=None)
    assert "'ground_truth' is" in session.out + session.err  # it is no truth either
    write(project, *({"metadata": task(left), "label": str(2 * left + 1)} for left in range(3)))
    session = project.run(agent="sums:of_the_row", eval_fn="exact", model=None, base_url=None)
    assert session.outcomes == {"passed": 3}, session.out


@pytest.mark.parametrize(
    ("agent", "rows", "refusal"),
    [
        (
            "sums:asks",
            [{"metadata": task(0)}, {"metadata": task(1), "user_prompt": "u"}],
            "data.jsonl: no question in line 1, and sums:asks needs one",
        ),
        (
            "sums:Adds",
            [{"user_prompt": "u"}, {"metadata": task(1)}, {"metadata": None, "user_prompt": "u"}],
            "data.jsonl: 'metadata' is no object with something in it in lines 1, 3",
        ),
    ],
)
def test_an_agent_that_would_get_nothing_of_some_rows_is_refused(
    project: Project, agent: str, rows: list[object], refusal: str
):
    write(project, *rows)
    session = project.run(agent=agent, eval_fn=None)
    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert refusal in session.out + session.err
    assert not project.endpoint.requests


def test_metadata_is_a_column_like_any_other_for_an_agent_that_is_asked(project: Project):
    rows = [{"user_prompt": "u", "metadata": {"a": 1}}, {"user_prompt": "v", "metadata": None}]
    write(project, *rows)
    project.write(
        "own.py",
        "def seen(messages, ground_truth, metadata):\n"
        "    return float(metadata['metadata'] in ({'a': 1}, None))\n",
    )
    session = project.run(agent="sums:asks", eval_fn="own:seen")
    assert session.outcomes == {"passed": 2}, session.out


def test_rows_without_a_system_prompt_send_no_system_message(project: Project):
    write(project, {"user_prompt": "u"}, {"user_prompt": "v", "system_prompt": None})
    roles = []

    def answer(ask: Ask) -> str:
        roles.append([message["role"] for message in ask.body["messages"]])
        return "fine"

    project.endpoint.answers = answer
    assert project.run(agent="sums:asks", eval_fn=None).outcomes == {"passed": 2}
    assert roles == [["user"], ["user"]]
