from __future__ import annotations

from typing import Any

import pytest

from osmosis_ai.messages import last_assistant_text

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": "#### 5", "tool_calls": None},
]


class TestLastAssistantText:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("answer", "answer"),
            ("", ""),
            (None, ""),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
            ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}], "b"),
            ([{"text": "a"}, "b", {"type": "text", "text": None}, 3], "ab"),
            (7, ""),
        ],
    )
    def test_it_is_the_text_of_the_content(self, content, text):
        assert last_assistant_text([*MESSAGES, {"role": "assistant", "content": content}]) == text

    def test_it_is_the_last_one(self):
        assert last_assistant_text([*MESSAGES, {"role": "tool", "content": "x"}]) == "#### 5"

    def test_it_is_empty_when_there_is_none(self):
        assert last_assistant_text(MESSAGES[:2]) == ""
        assert last_assistant_text([]) == ""
        assert last_assistant_text([{"role": "assistant"}]) == ""
