"""The kinds of answers that are no usual ones."""

from __future__ import annotations

from typing import Any

import pytest

from osmosis_ai.models.answers import kind_of_answer

CALL = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "reason", "kind"),
    [
        ({"content": "4"}, "stop", None),
        ({"content": "4"}, None, None),
        ({"content": "4"}, "weird", None),
        ({"content": None, "tool_calls": [CALL]}, "tool_calls", None),
        ({"content": "", "tool_calls": [CALL]}, "stop", None),
        ({"content": [{"type": "text", "text": "4"}]}, "stop", None),
        ({"content": None}, "stop", "empty"),
        ({"content": " \n"}, "stop", "empty"),
        ({"content": []}, None, "empty"),
        ({}, "weird", "empty"),
        ({"content": None}, "tool_calls", "no tool call"),
        ({"content": "let me look", "tool_calls": []}, "tool_calls", "no tool call"),
        ({"content": None}, "tool_use", "no tool call"),
        ({"content": None, "refusal": "I cannot help with that."}, "stop", "refused"),
        ({"content": "no"}, "refusal", "refused"),
        ({"content": None}, "content_filter", "filtered"),
        ({"content": "The ans"}, "content_filter", "filtered"),
        ({"content": None}, "length", "cut"),
        ({"content": "The ans"}, "max_tokens", "cut"),
        ({"content": None, "tool_calls": [CALL]}, "length", "cut"),
    ],
)
def test_an_answer_that_is_no_usual_one_has_a_word(
    message: dict[str, Any], reason: str | None, kind: str | None
):
    assert kind_of_answer(message, reason) == kind
