"""The section of a run that did not pass: what of its conversation it shows."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_osmosis.rollouts.failure_text import conversation, explanation
from pytest_osmosis.run_result import RolloutRecord, RunResult

SYSTEM = {"role": "system", "content": "Be brief. " * 40}
CALL: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}],
}
TOOL = {"role": "tool", "content": "2"}


def section(messages: list[dict[str, Any]], **changed: Any) -> str:
    result = RunResult("s", 0, 0, success=True, scores={"f": 0.0}, llm_calls=10, **changed)
    record = RolloutRecord(result, messages=messages, ground_truth="3")
    return explanation(record, threshold=1.0, max_turns=10)


def test_the_question_is_shown_and_the_middle_is_left_out():
    lines = conversation(
        [SYSTEM, {"role": "user", "content": "What is 1 + 2?"}, *[CALL, TOOL] * 20]
    ).splitlines()
    assert lines[0] == "  system     " + ("Be brief. " * 7)[:64].rstrip() + " …"
    assert lines[1:3] == ["  user       What is 1 + 2?", "  (30 messages left out)"]
    assert lines[3:] == ["  assistant  -> add(a=1)", "  tool       2"] * 5


def test_of_examples_before_the_question_the_question_is_shown():
    examples = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}] * 10
    shown = conversation([*examples, {"role": "user", "content": "two"}, *[CALL, TOOL] * 10])
    assert shown.count("  user       one") == 1
    assert shown.count("  user       two") == 1
    assert "(18 messages left out)" not in shown.splitlines()[0]


@pytest.mark.parametrize(("role", "left_out"), [("user", 4611), ("assistant", 3810)])
def test_of_a_long_message_the_beginning_and_the_end_are_shown(role: str, left_out: int):
    shown = conversation([{"role": role, "content": "begin " + "x" * 5000 + " end"}])
    assert shown.startswith(f"  {role:<10} begin xxx")
    assert shown.endswith("xxx end")
    assert f"[{left_out} characters left out]" in shown


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("x" * 160 + "\n", "x" * 160),
        ("y" * 15_296, "y" * 160 + " [15136 characters left out]"),
        ("1\n2\n3", "1\n2\n3"),
        ("1\n2\n3\n4\n5", "1\n2\n3 [4 characters left out]"),
    ],
)
def test_of_a_tools_result_three_lines_are_shown(content: str, shown: str):
    lines = conversation([{"role": "tool", "content": content}]).splitlines()
    assert "\n".join(line[13:] for line in lines) == shown


def test_an_agent_that_ran_out_of_turns_is_said_to():
    said = "no answer after 10 turns, the most allowed (max-turns)"
    assert section([CALL, TOOL]).splitlines()[1] == said
    assert said not in section([CALL, TOOL, {"role": "assistant", "content": "2"}])


def test_an_answer_that_ends_the_conversation_is_not_repeated():
    said = {"role": "assistant", "content": "It is\n2"}
    assert "  answer " not in section([said], answer="It is\n2")
    assert "  answer        4" in section([said], answer="4")
