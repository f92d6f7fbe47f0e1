"""The messages of a row: what they must be, and what of them is one question as text.

Messages with `from` and `value` (ShareGPT's) are read as those with `role` and `content`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from osmosis_ai.messages import text_of

from .decoding import brief, json_type

ROLES = ("system", "developer", "user", "assistant", "tool")
_TEXT_PARTS = ("text", "output_text")
_SPEAKERS = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant",
    "model": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip
"""Role by who speaks in messages with `from` and `value`."""


def as_chat(value: Any) -> Any:
    """Return messages with roles and contents; what is no list stays as it is."""
    if not isinstance(value, list):
        return value
    return [
        {"role": _SPEAKERS.get(each["from"], each["from"]), "content": each.get("value")}
        if isinstance(each, dict) and "role" not in each and isinstance(each.get("from"), str)
        else each
        for each in value
    ]


def wrong_messages(value: object) -> str | None:
    """Return what is wrong with the messages of a row, or None."""
    if not isinstance(value, list):
        return f"'messages' is {json_type(value)}; expected a list of chat messages"
    if not value:
        return "'messages' is an empty list; expected at least one message"
    return next(
        (problem for at, each in enumerate(value) if (problem := _wrong_one(at, each))), None
    )


def _wrong_one(at: int, message: object) -> str | None:
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


def lost_as_text(messages: Sequence[dict[str, Any]]) -> str:
    """Return what is lost where the last question alone is taken, as text; "" for nothing."""
    roles = [each["role"] for each in messages]
    if "tool" in roles:
        return "results of tools"
    if roles.count("user") > 1:
        return "more than one turn of the user"
    if "assistant" in roles[:-1]:
        return "turns of an assistant"
    if any(_has_other_parts(each.get("content")) for each in messages):
        return "parts that are not text"
    return ""


def _has_other_parts(content: object) -> bool:
    return isinstance(content, list) and any(
        not isinstance(part, str)
        and not (isinstance(part, dict) and part.get("type", "text") in _TEXT_PARTS)
        for part in content
    )


def system_text(messages: Sequence[dict[str, Any]]) -> str:
    """Return the text of the first system message, if there is one."""
    return _text(each for each in messages if each["role"] in ("system", "developer"))


def last_user_text(messages: Sequence[dict[str, Any]]) -> str:
    """Return the text of the last user message, if there is one."""
    return _text(each for each in reversed(messages) if each["role"] == "user")


def _text(messages: Iterable[dict[str, Any]]) -> str:
    first = next(iter(messages), None)
    return "" if first is None else text_of(first.get("content"))
