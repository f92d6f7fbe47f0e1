"""Ready scorers that need more of a row than its ground truth, from the option to the figure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Project

ECHO = "def answer(row):\n    return row['says']\n"


@pytest.fixture
def echo(project: Project) -> Project:
    """An agent that says what its row has it say."""
    project.write("app.py", ECHO)
    return project


def scores(echo: Project, eval_fn: str, *rows: dict[str, Any]) -> list[float]:
    echo.rows(*rows)
    session = echo.run(agent="app:answer", model=None, base_url=None, eval_fn=eval_fn)
    assert session.ret in (0, 1), session.err
    return [run["scores"][eval_fn] for run in session.runs]


def refusal(echo: Project, eval_fn: str, *rows: dict[str, Any]) -> str:
    echo.rows(*rows)
    session = echo.run(agent="app:answer", model=None, base_url=None, eval_fn=eval_fn)
    assert session.ret == 4, session.out
    return session.mistake


def test_choice_takes_the_ground_truth_with_its_type(echo: Project):
    row = {"user_prompt": "Which?", "choices": ["Paris", "Rome", "Oslo"]}
    right = {**row, "says": "The answer is (B).", "ground_truth": 1}
    text = {**right, "says": "It is Rome."}
    wrong = {**right, "says": "Paris or Rome"}
    assert scores(echo, "choice", right, text, wrong) == [1, 1, 0]
    digits = {**right, "ground_truth": "1"}
    refused = refusal(echo, "choice", right, digits)
    assert refused.endswith(
        "data.jsonl:2: 'ground_truth' is '1': is the first option 0 or 1? Say so: "
        "choice(base=0) or choice(base=1)"
    )
    assert scores(echo, "choice(base=0)", digits) == [1]
    labelled = {"user_prompt": "?", "options": {"text": ["a", "b"], "label": ["1", "2"]}}
    labelled |= {"says": "2", "ground_truth": "2"}
    assert "'choices'; try choice(options='options')" in refusal(echo, "choice", labelled)
    assert scores(echo, "choice('options')", labelled) == [1]
