"""What an agent returns, as messages: told by their shape, whatever library made them.

Knows OpenAI's, Anthropic's, LangChain's and pydantic-ai's messages, their results and states, by
names of attributes; imports none of these libraries.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .errors import OsmosisValidationError, UnusableReturn

Message = dict[str, Any]

EXPECTED = (
    "expected text, a message (a dict with 'role', or a client library's), a list of messages, a "
    "state with 'messages', a RolloutResult, or another value that JSON has (also of an object "
    "with model_dump(), or of a dataclass)"
)
_ROLES_BY_TYPE = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
}
"""Roles by what LangChain calls the type of a message."""
_ROLES_BY_PART = {"system-prompt": "system", "user-prompt": "user"}
"""Roles by what pydantic-ai calls the kind of a request's part."""


def messages_of(value: Any) -> list[Message] | None:
    """Return what is a message, a list of such, or holds them, as dicts; None for anything else."""
    if isinstance(value, str | bytes):
        return None
    if isinstance(value, list | tuple):
        return _all_messages(value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    return None if isinstance(value, type) else _of_object(value)


def json_text(value: Any, owner: str) -> str:
    """Return a value as JSON; models and dataclasses in it as what they hold.

    Raises:
        UnusableReturn: when its type, or that of a value in it, has no JSON.
        OsmosisValidationError: when this one has none: None, NaN, or a value that holds itself.
    """
    if value is None:
        raise OsmosisValidationError(f"{owner} returned None; {EXPECTED}")
    kind = type(value).__name__
    try:
        return json.dumps(value, default=_json_value, ensure_ascii=False, allow_nan=False)
    except _NoJson as error:
        inside = "" if error.value is value else f" with a value of type {error}"
        problem = f"a value of type {kind}{inside}, which JSON does not have"
    except TypeError as error:  # a key
        problem = f"a value of type {kind}, which JSON does not have ({error})"
    except (ValueError, RecursionError) as error:
        problem = f"a {kind} that JSON does not have ({error})"
        raise OsmosisValidationError(f"{owner} returned {problem}; {EXPECTED}") from None
    raise UnusableReturn(f"{owner} returned {problem}; {EXPECTED}")


class _NoJson(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__(type(value).__name__)
        self.value = value


def _json_value(value: Any) -> Any:
    """Return what stands for an object in JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, type):
        if _dumps(value):
            return _dumped(value)
        if dataclasses.is_dataclass(value):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    raise _NoJson(value)


def _dumped(value: Any) -> Any:
    """Return what `model_dump` gives, with the values of JSON where it has that mode."""
    for options in ({"mode": "json", "exclude_none": True}, {"exclude_none": True}):
        with suppress(TypeError):
            return value.model_dump(**options)
    return value.model_dump()


def _all_messages(values: Sequence[Any]) -> list[Message] | None:
    conversation: list[Message] = []
    for value in values:
        messages = None if isinstance(value, list | tuple) else messages_of(value)
        if messages is None:
            return None
        conversation += messages
    return conversation or None


def _held(messages: Any) -> list[Message] | None:
    """Return the messages of what is a list of such."""
    return _all_messages(messages) if isinstance(messages, list | tuple) else None


def _of_mapping(value: Mapping[Any, Any]) -> list[Message] | None:
    if isinstance(value.get("role"), str):
        return [dict(value)]
    if value.get("type") in _ROLES_BY_TYPE and "content" in value:
        return [_of_langchain(value.get, str(value["type"]))]
    return _held(value.get("messages"))


def _of_object(value: Any) -> list[Message] | None:
    def get(name: str, default: Any = None) -> Any:
        return getattr(value, name, default)

    role, kind, parts = get("role"), get("type"), get("parts")
    if isinstance(role, str) and (get("content") is not None or get("tool_calls") or _dumps(value)):
        return [_of_role(value, role)]
    if isinstance(kind, str) and kind in _ROLES_BY_TYPE and get("content") is not None:
        return [_of_langchain(get, kind)]
    if get("kind") in ("request", "response") and isinstance(parts, list | tuple):
        return _of_parts(parts, get("kind"))
    if callable(every := get("all_messages")):  # the result of a run of pydantic-ai
        return _with_output(_held(every()), get("output"))
    if isinstance(choices := get("choices"), list) and choices:  # a chat completion
        return messages_of(getattr(choices[0], "message", None))
    if isinstance(text := get("output_text"), str):  # a response of OpenAI's
        return [{"role": "assistant", "content": text}]
    return _held(get("messages"))


def _with_output(messages: list[Message] | None, output: Any) -> list[Message] | None:
    """Return a conversation that ends with what came of it: a structured output is in no text."""
    if messages is None or output is None or isinstance(output, str):
        return messages
    text = json.dumps(output, default=_as_text, ensure_ascii=False)
    return [*messages, {"role": "assistant", "content": text}]


def _dumps(value: Any) -> bool:
    return callable(getattr(value, "model_dump", None))


def _of_role(value: Any, role: str) -> Message:
    message: Message = {"content": None}  # a refusal has none, and is read as what has
    if _dumps(value):
        message |= _dumped(value)
    for name in ("content", "tool_calls", "tool_call_id", "name"):
        own = getattr(value, name, None)
        if own is not None and message.get(name) is None:
            message[name] = own
    return {**message, "role": str(getattr(role, "value", role))}


def _of_langchain(get: Any, kind: str) -> Message:
    message: Message = {"role": _ROLES_BY_TYPE[kind], "content": get("content")}
    calls = get("tool_calls")
    if isinstance(calls, list) and calls:
        message["tool_calls"] = [_call(call.get) for call in calls if isinstance(call, Mapping)]
    if isinstance(identity := get("tool_call_id"), str):
        message["tool_call_id"] = identity
    return message


def _call(get: Any, name: str = "name", identity: str = "id") -> Message:
    arguments = get("args")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, default=str)
    function = {"name": get(name), "arguments": arguments}
    return {"id": get(identity) or "", "type": "function", "function": function}


def _of_parts(parts: Sequence[Any], kind: str) -> list[Message]:
    """Return the parts of one message of pydantic-ai: a request's one by one, a response's as one.

    Thoughts are no messages.
    """
    if kind == "request":
        return [_of_request(part) for part in parts]
    texts = [part.content for part in parts if part.part_kind == "text"]
    calls = [
        _call(lambda name, part=part: getattr(part, name, None), "tool_name", "tool_call_id")
        for part in parts
        if part.part_kind == "tool-call"
    ]
    answer: Message = {"role": "assistant", "content": "".join(texts) if texts else None}
    return [{**answer, "tool_calls": calls} if calls else answer]


def _of_request(part: Any) -> Message:
    content = part.content
    role = _ROLES_BY_PART.get(part.part_kind)
    if role is not None:
        return {"role": role, "content": [*content] if isinstance(content, tuple) else content}
    text = content if isinstance(content, str) else json.dumps(content, default=_as_text)
    identity = getattr(part, "tool_call_id", None)
    if getattr(part, "tool_name", None) is None:  # asked to try again
        return {"role": "user", "content": text}
    return {"role": "tool", "tool_call_id": identity, "content": text}


def _as_text(value: Any) -> Any:
    try:
        return _json_value(value)
    except _NoJson:
        return str(value)
