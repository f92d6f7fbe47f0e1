"""The functions of the page on scorers score as it says."""

from __future__ import annotations

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
    ("trajectory.py", "few_turns", TALK, None, {"turns": 3}, 1.0),
    ("both.py", "short_and_right", "Rome", "Rome", {}, 1.0),
    ("both.py", "short_and_right", "Rome" * 100, "Rome", {}, 0.7),
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


def test_ready_rubrics_stand_on_the_page_as_they_are():
    texts = [block.text.strip() for block in blocks(PAGE) if block.language == "text"]
    assert texts == [*CRITERIA.values()]


def test_every_recipe_is_held_by_a_sample_or_needs_what_a_test_has_not():
    sampled = {sample[0] for sample in SAMPLES}
    assert sorted({*CODE} - sampled) == ["lookup.py", "rewards.py"]
