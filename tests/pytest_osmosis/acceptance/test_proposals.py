"""The command line that a refusal proposes, typed: files in the shapes that people publish."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.support.endpoints import Ask
from tests.support.project import Project, Session

Rows = list[dict[str, Any]]
PEARS = [f"A bag has {at} pears, and {at} more are added. How many are there?" for at in range(3)]
COLOURS = ["red", "green", "blue", "grey"]
FIELDS = ["Dust.", "Mud.", "Rain."]


def said(text: str, *more: dict[str, str]) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}, *more]


def programs(**columns: str) -> Rows:
    tests = [["assert f(1) == 2", "assert f(2) == 3"], ["assert f(3) == 3"], ["assert f(0) == 0"]]
    return [{**columns, "text": f"Write f, case {at}.", "test_list": tests[at]} for at in range(3)]


CODE = "```python\ndef f(x):\n    return x{}\n```"
SHAPES: dict[str, tuple[Rows, list[str], int]] = {
    # The rows, what the model answers to each, and how many of these are right.
    "worked solutions": (
        [{"question": ask, "answer": f"Add.\n#### {at * 2}"} for at, ask in enumerate(PEARS)],
        ["So 0.\n#### 0", "It is 2.", "It is 5."],
        2,
    ),
    "options in a list, an index": (
        [{"question": f"Which, {at}?", "choices": COLOURS, "answer": at} for at in (0, 3, 1)],
        ["A", "Answer: D", "blue"],
        2,
    ),
    "labels and texts": (
        [
            {
                "id": f"M-{at}",
                "question": f"Which, {at}?",
                "choices": {"text": COLOURS[:3], "label": ["1", "2", "3"]},
                "answerKey": f"{at + 1}",
            }
            for at in range(3)
        ],
        ["1", "green", "2"],
        2,
    ),
    "endings, digits as text": (
        [{"ctx": field, "endings": COLOURS, "label": at}
            for field, at in zip(FIELDS, "203", strict=True)],
        ["C", "(A)", "B"],
        2,
    ),
    "options in columns": (
        [
            {"sentence": f"The _ {at} fell.", "option1": "cup", "option2": "pot", "answer": right}
            for at, right in enumerate("212")
        ],
        ["B", "A", "A"],
        2,
    ),
    "a passage, true or false": (
        [
            {"question": f"is it {at}", "passage": "It is.", "answer": right}
            for at, right in enumerate([True, False, True])
        ],
        ["true", "False.", "false"],
        2,
    ),
    "spans": (
        [
            {
                "context": f"{name} won.",
                "question": "Who won?",
                "answers": {"text": [name, f"the {name}"], "answer_start": [0, 0]},
            }
            for name in ("Denver", "Boston", "Dallas")
        ],
        ["Denver did.", "Boston", "Nobody."],
        2,
    ),
    "aliases": (
        [
            {"question": f"Who wrote {at}?", "answer": {"value": name, "aliases": [name, "N. N."]}}
            for at, name in enumerate(["Sand", "Eliot", "Bell"])
        ],
        ["George Sand", "N. N.", "Brontë"],
        2,
    ),
    "messages, a truth in an object": (
        [
            {"prompt": said(ask), "reward_model": {"ground_truth": f"{at * 2}"}, "ability": "x"}
            for at, ask in enumerate(PEARS)
        ],
        ["0", "#### 2", "5"],
        2,
    ),
    "a text or any of a list": (
        [
            {"input": said(f"Capital {at}?"), "ideal": ideal}
            for at, ideal in enumerate(["Rome", ["Bern", "Berne"], "Oslo"])
        ],
        ["Rome", "It is Berne.", "Turku"],
        2,
    ),
    "the last turn": (
        [
            {"messages": said(f"Capital {at}?", {"role": "assistant", "content": name})}
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
    "from and value": (
        [
            {
                "conversations": [
                    {"from": "human", "value": f"Capital {at}?"},
                    {"from": "gpt", "value": name},
                ]
            }
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
    "inputs and outputs": (
        [
            {"inputs": {"question": f"Capital {at}?"}, "outputs": {"answer": name}, "id": at}
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
    "golden pairs": (
        [
            {"input": f"Capital {at}?", "actual_output": None, "expected_output": name,
             "context": ["a"]}
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
    "variables and an assertion": (
        [
            {"vars": {"topic": f"Capital {at}?"}, "assert": [{"type": "equals", "value": name}]}
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
    "a list of tests": (
        programs(code="def f(x): ..."),
        [CODE.format(" + 1"), CODE.format(""), CODE.format(" + 1")],
        2,
    ),
    "a column of tests": (
        [
            {
                "task_id": f"T/{at}",
                "prompt": f'def f(x):\n    """Add {at}."""\n',
                "entry_point": "f",
                "canonical_solution": f"    return x + {at}\n",
                "test": f"def check(candidate):\n    assert candidate(1) == {1 + at}\n",
            }
            for at in range(3)
        ],
        [CODE.format(""), CODE.format(" + 1"), CODE.format(" + 3")],
        2,
    ),
    "names with blanks": (
        [
            {"Type": "x", "Question": f"Capital {at}?", "Best Answer": name, "Incorrect": "y"}
            for at, name in enumerate(["Rome", "Bern", "Oslo"])
        ],
        ["Rome", "Bern", "Turku"],
        2,
    ),
}  # fmt: skip


def typed(session: Session) -> list[str]:
    """Return the words of the command line that a refusal proposes."""
    _, found, line = session.mistake.rpartition("this runs:\n  ")
    assert found, session.mistake or session.out
    return shlex.split(line)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_proposed_runs_and_scores_right(project: Project, shape: str):
    rows, answers, right = SHAPES[shape]
    project.write("rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    order: list[str] = []

    def answer(ask: Ask) -> str:
        order.append(ask.row)
        return answers[len(order) - 1]

    project.endpoint.answers = answer
    refused = project.run(agent=None, eval_fn=None, data="rows.jsonl")
    assert refused.ret == 4 and not order
    program, *words = typed(refused)
    session = project.plain(*words)
    assert program == "pytest" and session.ret == 1, session.out + session.err
    [figures] = session.report["summary"]["eval_fns"].values()
    assert figures["mean"] == pytest.approx(right / 3)
    assert len(order) == 3
