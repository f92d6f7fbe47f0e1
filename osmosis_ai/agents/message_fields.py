"""Reading the fields of chat messages that a model or an endpoint may have left out or misspelt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages import text_of

__all__ = [
    "count_messages_by_role",
    "get_message_content",
    "get_message_role",
    "is_assistant_message",
    "is_tool_message",
    "is_user_message",
    "parse_tool_calls",
]


def get_message_content(message: Mapping[str, Any]) -> str:
    """Return the message's text, its text parts joined; "" where there is none."""
    return text_of(message.get("content"))


def get_message_role(message: Mapping[str, Any]) -> str:
    """Return the message's role; "unknown" where there is none."""
    role = message.get("role")
    return role if isinstance(role, str) else "unknown"


def is_assistant_message(message: Mapping[str, Any]) -> bool:
    """Return whether the model wrote the message."""
    return get_message_role(message) == "assistant"


def is_tool_message(message: Mapping[str, Any]) -> bool:
    """Return whether the message is the result of a tool call."""
    return get_message_role(message) == "tool"


def is_user_message(message: Mapping[str, Any]) -> bool:
    """Return whether the message is the user's."""
    return get_message_role(message) == "user"


def count_messages_by_role(messages: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of messages of each role."""
    return dict(Counter(map(get_message_role, messages)))


def parse_tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls of a message; empty where it has none."""
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []
