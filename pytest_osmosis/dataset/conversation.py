"""What the column `messages` must hold: a chat that a rollout can begin with.

Knows one value; does not know columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from osmosis_ai.messages import text_of

from .decoding import brief, json_type

ROLES = ("system", "developer", "user", "assistant", "tool")


def wrong_messages(value: object) -> str | None:
    """Return what is wrong with the messages of a row, or None."""
    if not isinstance(value, list):
        return f"'messages' is {json_type(value)}; expected a list of chat messages"
    if not value:
        return "'messages' is an empty list; expected at least one message"
    return next((problem for at, each in enumerate(value) if (problem := _wrong(at, each))), None)


def _wrong(at: int, message: object) -> str | None:
    if not isinstance(message, dict):
        return f"'messages[{at}]' is {json_type(message)}; expected an object with role and content"
    role = message.get("role")
    if role not in ROLES:
        shown = brief(role) if isinstance(role, str) else json_type(role)
        return f"'messages[{at}]' has the role {shown}; expected one of {', '.join(ROLES)}"
    content = message.get("content")
    if isinstance(content, (str, list)) or (content is None and role == "assistant"):
        return None
    return f"'messages[{at}].content' is {json_type(content)}; expected a string"


def system_text(messages: Sequence[dict[str, Any]]) -> str:
    """Return the text of the first system message, if there is one."""
    return _text(each for each in messages if each["role"] in ("system", "developer"))


def last_user_text(messages: Sequence[dict[str, Any]]) -> str:
    """Return the text of the last user message, if there is one."""
    return _text(each for each in reversed(messages) if each["role"] == "user")


def _text(messages: Iterable[dict[str, Any]]) -> str:
    first = next(iter(messages), None)
    return "" if first is None else text_of(first.get("content"))
