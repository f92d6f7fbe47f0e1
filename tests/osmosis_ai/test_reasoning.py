"""What of a model's text is its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai import without_reasoning
from osmosis_ai.reasoning import answer_in


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>4", "4"),
        ("\ufeff\n <think>\na\n</think>\n\n4\n", "4\n"),
        ("<Thinking>a</THINKING>4", "4"),
        ("<reasoning effort='low'>a</reasoning>4", "4"),
        ("<think>a</think><reasoning>b</reasoning> 4", "4"),
        ("<think/>4", "4"),
        ("<think>a</think>", ""),
        ("<think>a<think>b</think>c</think>4", "4"),
        ("<think>I write <think> here</think>4", "4"),
        ("<think>I close with </think> later</think>4", "4"),
        ("<think>a</thinking>4", "4"),
        ("<think>in `</think>` I close</think>4", "4"),
        ("<think>```py\nx\n</think>\nSee ```py\ny\n```", "See ```py\ny\n```"),
        # A template has cut the opening tag.
        ("a, b</think>4", "4"),
        ("a</think>b</thinking>4", "4"),
        ("</reasoning>4", "4"),
        # Further on, or within code, such a tag is text.
        ("Put it in <think>x</think>, please", None),
        ("It begins with <think>", None),
        ("<think>a</think>Put it in <think>x</think>", "Put it in <think>x</think>"),
        ("<think>a</think>It begins with <think>", "It begins with <think>"),
        ("The tag `</think>` closes it", None),
        ("```\na</think>\n```\n4", None),
        ("<thinker>a</thinker>4", None),
        ("I think it is 4", None),
        ("2 < 3 > 1", None),
        ("", None),
    ],
)
def test_reasoning_is_not_the_answer(text: str, answer: str | None):
    assert without_reasoning(text) == (text if answer is None else answer)


@pytest.mark.parametrize("text", ["<think>maybe 4", "<think>a</think>\n<thinking>4", "<reasoning>"])
def test_a_text_that_was_cut_within_its_reasoning_has_no_answer(text: str):
    assert answer_in(text) is None
    assert without_reasoning(text) == ""


@given(thought=st.text(alphabet="ab<>/ `\n"), answer=st.text(alphabet="ab <>\n").map(str.lstrip))
def test_what_stands_behind_a_thought_is_the_answer(thought: str, answer: str):
    assert without_reasoning(f"<think>{thought}</think>{answer}") == answer


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 30_000,
        "</think>" * 30_000,
        "<think>x</think>" * 15_000,
        "<think/>" * 30_000,
        "<think " * 30_000,
        "<think>" + "`a" * 100_000,
        "``` " * 50_000,
        "</" + " " * 200_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_long_text_is_read_in_one_pass(text: str):
    assert len(without_reasoning(text)) <= len(text)
