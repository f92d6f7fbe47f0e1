"""The text of messages, in every form that an OpenAI-compatible endpoint gives it.

Knows the message format; does not know what the text is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEXT_PARTS = ("text", "output_text")


def last_assistant_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The content of the last assistant message, text parts joined; `""` when there is none."""
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return text_of(message.get("content"))
    return ""


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    return "".join(_part_text(part) for part in content)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type", "text") in _TEXT_PARTS:
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""
