"""A recorded conversation as what a judge is shown: the answer, and what was said besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osmosis_ai.messages import text_of
from pytest_osmosis.dataset.decoding import json_type
from pytest_osmosis.dataset.errors import RecordError


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, taken apart for the judge."""

    answer: str
    """The text of the last assistant message."""
    rest: str | None
    """The other messages, a paragraph each; None where there are none."""


def read_conversation(messages: object) -> Conversation:
    """Return the parts of a list of chat messages; RecordError says what is wrong with it."""
    if not isinstance(messages, list):
        raise RecordError(f"'messages' is {json_type(messages)}; expected a list of messages")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RecordError(f"'messages' {number} has no role; expected {{role, content}}")
    places = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
    if not places:
        raise RecordError("'messages' holds no assistant message to judge")
    answer = text_of(messages[places[-1]].get("content"))
    if not answer.strip():
        raise RecordError("the last assistant message of 'messages' has no text to judge")
    others = [one for number, one in enumerate(messages) if number != places[-1]]
    return Conversation(answer, "\n\n".join(_paragraphs(others)) or None)


def _paragraphs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        said = [text_of(message.get("content")), *_calls(message.get("tool_calls"))]
        yield f"{message['role']}: " + "\n".join(text for text in said if text)


def _calls(tool_calls: object) -> Iterator[str]:
    for call in tool_calls if isinstance(tool_calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"-> {function.get('name')}({function.get('arguments') or ''})"
