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
    no_digits = refusal(echo, "choice(base=0)", {**right, "ground_truth": "B"})
    assert "base has no effect: no ground truth in data.jsonl is a number or digits" in no_digits
    blank = refusal(echo, "choice", {**right, "ground_truth": " "})
    assert blank.endswith("is blank; leave such rows out: --osmosis-where 'ground_truth!='")
    labelled = {"user_prompt": "?", "options": {"text": ["a", "b"], "label": ["1", "2"]}}
    labelled |= {"says": "2", "ground_truth": "2"}
    assert "'choices'; try choice(options='options')" in refusal(echo, "choice", labelled)
    assert scores(echo, "choice('options')", labelled) == [1]


def test_code_runs_the_tests_of_the_row_and_the_header_says_so(echo: Project):
    row = {"user_prompt": "Write add.", "test_list": ["assert add(1, 2) == 3"]}
    right = {**row, "says": "```python\ndef add(a, b):\n    return a + b\n```"}
    wrong = {**row, "says": "import os; os._exit(0)"}
    assert scores(echo, "code('test_list')", right, wrong) == [1, 0]
    session = echo.run("--osmosis-fresh", agent="app:answer", model=None, base_url=None,
                       eval_fn="code('test_list')")  # fmt: skip
    assert sum("code executes what the model wrote" in line for line in session.lines) == 1
    nothing = {**row, "test_list": ["x = 1"], "says": "x"}
    said = "data.jsonl:2: the tests in 'test_list' assert nothing"
    assert refusal(echo, "code('test_list')", right, nothing).endswith(said)
    assert "try code('test_list')" in refusal(echo, "code", right)
