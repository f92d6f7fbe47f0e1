"""The functions of the page on scorers score as it says."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from osmosis_ai.rubric.criteria import CRITERIA

from .blocks import ROOT, blocks

PAGE = ROOT / "docs" / "guides" / "scorers.md"
CODE = {block.file: block for block in blocks(PAGE) if block.language == "python"}


def call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": name, "function": function}]}


TALK = [
    {"role": "user", "content": "What is 2 + 3 times 4?"},
    call("multiply", '{"a": 3, "b": 4}'),
    {"role": "tool", "content": "12"},
    call("add", '{"a": 2, "b": 12}'),
    {"role": "tool", "content": "Error: no such tool"},
    {"role": "assistant", "content": "14"},
]
SAMPLES = [
    ("trajectory.py", "called_in_order", TALK, None, {"calls": ["multiply", "add"]}, 1.0),
    ("trajectory.py", "called_in_order", TALK, None, {"calls": ["add", "multiply"]}, 0.0),
    ("trajectory.py", "called_in_order", [call("add", '{"a":')], None, {"calls": ["add"]}, 1.0),
]


@pytest.mark.parametrize(
    ("file", "name", "answer", "truth", "row", "score"),
    SAMPLES,
    ids=[f"{number}-{sample[1]}-{sample[-1]}" for number, sample in enumerate(SAMPLES)],
)
def test_a_recipe_scores_as_the_page_says(
    file: str, name: str, answer: Any, truth: str | None, row: dict[str, Any], score: float
):
    verdict = function(file, name)(answer, truth, row)
    assert verdict["score"] == pytest.approx(score)
    assert verdict["reason"]


def function(file: str, name: str) -> Any:
    module = ModuleType("recipe")
    exec(compile(CODE[file].text, file, "exec"), module.__dict__)
    return getattr(module, name)


def test_each_ready_rubric_stands_on_the_page_by_the_question_that_it_asks():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^?(]+)", PAGE.read_text("utf-8"), re.M))
    asked = {name: text.partition("?")[0] for name, text in CRITERIA.items()}
    assert {name: rows[name].strip() for name in CRITERIA} == asked


def test_every_recipe_is_held_by_a_sample_or_needs_what_a_test_has_not():
    sampled = {sample[0] for sample in SAMPLES}
    assert {*CODE} - sampled == {"rewards.py"}
