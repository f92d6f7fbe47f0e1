"""The tool calls that a row wants, and how those of a conversation differ from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .agents.tool_calls import ToolCall

Order = Literal["any", "in_order", "exact"]
Arguments = Literal["subset", "equal", "ignore"]
_SHOWN = 80
_ARGUMENTS = ("arguments", "args", "input")
"""What OpenAI, Gemini and Anthropic call the arguments of a call."""
_BESIDE = {"name", "id", "call_id", "type", "index", "function"}


class CallsError(ValueError):
    """What is wrong with the wanted calls of a row; a sentence."""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """One call that a row wants."""

    name: str
    arguments: Mapping[str, Any] | None = None
    """None: any."""

    def __str__(self) -> str:
        return self.name if self.arguments is None else _shown(self.name, self.arguments)


def wanted_calls(row: Mapping[str, Any], column: str) -> list[WantedCall]:
    """Return the calls in a column of a row: names, or objects with `name` and `arguments`.

    Raises:
        CallsError: for anything else.
    """
    value = row.get(column)
    if value is None:
        raise CallsError(f"the row has no {column!r}; tools compares calls with it")
    if isinstance(value, str):
        value = _read(value, column) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list):
        raise CallsError(f"{column!r} is no list of calls")
    return [_wanted(one, column) for one in value]


def _wanted(one: Any, column: str) -> WantedCall:
    if isinstance(one, str) and re.fullmatch(r"\s*[^\s,;]+\s*", one):
        return WantedCall(one.strip())
    if isinstance(one, Mapping):
        one = one["function"] if isinstance(one.get("function"), Mapping) else one
        if "parameters" in one or "description" in one:
            raise CallsError(f"{column!r} defines tools; tools wants a column of calls")
        given = [one[key] for key in _ARGUMENTS if one.get(key) is not None]
        arguments = given[0] if given else None
        if isinstance(arguments, str):
            arguments = _read(arguments, column)
        is_clear = len(given) == 1 or (not given and not one.keys() - _BESIDE - {*_ARGUMENTS})
        is_read = arguments is None or isinstance(arguments, Mapping)
        if isinstance(one.get("name"), str) and is_clear and is_read:
            return WantedCall(one["name"], arguments)
    shown = json.dumps(one, ensure_ascii=False, default=str)[:_SHOWN]
    raise CallsError(f"{column!r} has {shown}; expected a name, or an object with name, arguments")


def _read(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise CallsError(f"{column!r} has {text[:_SHOWN]!r}, which is not JSON") from None


def without_repeated(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls without those that failed and were made again with success."""
    return [
        call
        for at, call in enumerate(calls)
        if call.error is None
        or not any(later.name == call.name and later.error is None for later in calls[at + 1 :])
    ]


def first_difference(
    calls: Sequence[ToolCall],
    wanted: Sequence[WantedCall],
    *,
    order: Order,
    extra: bool,
    matches: Callable[[ToolCall, WantedCall], bool],
) -> str | None:
    """Return how calls first differ from those that are wanted; None where they do not."""
    made = ", ".join(_shown(call.name, call.arguments) for call in calls)
    called = f"called {made[:400]}" if made else "the conversation shows no call"
    if order == "exact":
        return _in_place(calls, wanted, matches)
    pairs = _in_order(calls, wanted, matches) if order == "in_order" else {}
    if order == "any":
        pairs = _paired(calls, wanted, matches)
    for at, one in enumerate(wanted):
        if at not in pairs:
            is_there = order == "in_order" and any(matches(call, one) for call in calls)
            return f"no call {one}{' at its place' if is_there else ''}; {called}"
    left = [at for at in range(len(calls)) if at not in pairs.values()]
    if left and not extra:
        return f"{_shown(calls[left[0]].name, calls[left[0]].arguments)} was not wanted"
    return None


def _in_place(
    calls: Sequence[ToolCall],
    wanted: Sequence[WantedCall],
    matches: Callable[[ToolCall, WantedCall], bool],
) -> str | None:
    for at, (call, one) in enumerate(zip(calls, wanted, strict=False), 1):
        if not matches(call, one):
            return f"call {at} is {_shown(call.name, call.arguments)}, wanted {one}"
    if len(calls) == len(wanted):
        return None
    if len(calls) < len(wanted):
        return f"call {len(calls) + 1} is missing, wanted {wanted[len(calls)]}"
    more = calls[len(wanted)]
    return f"call {len(wanted) + 1} is {_shown(more.name, more.arguments)}, not wanted"


def _in_order(
    calls: Sequence[ToolCall],
    wanted: Sequence[WantedCall],
    matches: Callable[[ToolCall, WantedCall], bool],
) -> dict[int, int]:
    """Return the place of the call for each wanted one, as far as they follow each other."""
    rest: Iterator[tuple[int, ToolCall]] = iter(enumerate(calls))
    pairs = {}
    for at, one in enumerate(wanted):
        place = next((place for place, call in rest if matches(call, one)), None)
        if place is None:
            break
        pairs[at] = place
    return pairs


def _paired(
    calls: Sequence[ToolCall],
    wanted: Sequence[WantedCall],
    matches: Callable[[ToolCall, WantedCall], bool],
) -> dict[int, int]:
    """Return a call of its own for as many wanted ones as possible."""
    taken: dict[int, int] = {}

    def place(at: int, seen: set[int]) -> bool:
        for number, call in enumerate(calls):
            if number not in seen and matches(call, wanted[at]):
                seen.add(number)
                if number not in taken or place(taken[number], seen):
                    taken[number] = at
                    return True
        return False

    for at in range(len(wanted)):
        place(at, set())
    return {at: number for number, at in taken.items()}


def _shown(name: str, arguments: Mapping[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given if len(given) <= _SHOWN else given[: _SHOWN - 1] + '…'})"
