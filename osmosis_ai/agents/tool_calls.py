"""The tool calls of a conversation, each with its parsed arguments and its result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..messages import text_of
from .errors import ToolArgumentError
from .tools import parse_tool_arguments


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """Empty where they are not a JSON object; `error` says so then."""
    result: str | None = None
    """The text of the tool's message; None where the conversation has none."""
    error: str | None = None
    """Why the call failed: arguments that cannot be parsed; a result that begins with `Error`, or
    is a JSON object with an `error`; a message of the tool with the status `error`."""

    def matches(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether it is a call of this tool with these arguments, among others or not."""
        return self.name == name and all(
            key in self.arguments and self.arguments[key] == value
            for key, value in arguments.items()
        )


def tool_calls(messages: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    """Return the tool calls of a conversation, in their order."""
    results = {
        message["tool_call_id"]: message
        for message in messages
        if message.get("role") == "tool" and isinstance(message.get("tool_call_id"), str)
    }
    return [
        _call(function, results.get(call_id))
        for message in messages
        for call_id, function in _functions(message)
    ]


def _functions(message: Mapping[str, Any]) -> Iterator[tuple[object, Mapping[str, Any]]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
            yield call.get("id"), call["function"]


def _call(function: Mapping[str, Any], answer: Mapping[str, Any] | None) -> ToolCall:
    arguments: dict[str, Any] = {}
    result = None if answer is None else text_of(answer.get("content"))
    error = None if answer is None or result is None else _error(answer, result)
    try:
        arguments = parse_tool_arguments(function.get("arguments") or "")
    except ToolArgumentError as wrong:
        error = error or str(wrong)
    return ToolCall(str(function.get("name")), arguments, result, error)


def _error(answer: Mapping[str, Any], result: str) -> str | None:
    if answer.get("status") == "error" or result.lstrip().startswith("Error"):
        return result
    try:
        document = json.loads(result) if result.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return str(document["error"]) if isinstance(document, dict) and document.get("error") else None
