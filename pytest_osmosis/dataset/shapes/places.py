"""Columns, and places within the objects of one: what stands there, and how a template names it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ..column_names import FUNCTIONS, plain
from ..decoding import brief
from ..truths import is_json, members

NEW_LINE = '{{ "\\n" }}'
BLANK_LINE = '{{ "\\n\\n" }}'
_SAMPLE = 60
_FUNCTION_NAMES = frozenset(map(plain, FUNCTIONS))


class Place(NamedTuple):
    """A column, or a place within the objects of one."""

    path: str
    """As `--osmosis-map` names it."""
    expression: str
    """As a template names it."""
    name: str
    """Its own name, to be compared."""
    depth: int
    values: list[Any]
    """What stands there in each row that was looked at."""

    @property
    def present(self) -> list[Any]:
        """What stands there, without nulls."""
        return [value for value in self.values if value is not None]

    def at(self, index: int, values: list[Any]) -> Place:
        """Return the place of one member of its lists."""
        path, expression = f"{self.path}[{index}]", f"{self.expression}[{index}]"
        return self._replace(path=path, expression=expression, values=values)


def places_of(
    path: str, expression: str, name: str, depth: int, values: list[Any]
) -> Iterator[Place]:
    """Yield a column, and every place within its objects that a map can name."""
    yield Place(path, expression, name, depth, values)
    present = [value for value in values if value is not None]
    if depth >= 3 or not present:
        return
    are_nested = all(is_list_of(value, list) for value in present)
    if are_nested or all(is_list_of(value, dict) and len(value) == 1 for value in present):
        if is_chat(present):
            return
        path, expression = f"{path}[0]", f"{expression}[0]"
        values = [None if value is None else value[0] for value in values]
        present = [value for value in values if value is not None]
        if are_nested and is_chat(present):
            yield Place(path, expression, name, depth, values)
    if not all(isinstance(value, dict) for value in present):
        return
    for key in dict.fromkeys(chain.from_iterable(present)):
        if not set(".[]") & set(key):
            inner = [None if value is None else value.get(key) for value in values]
            dotted = (
                f".{key}"
                if key.isidentifier() and not hasattr(dict, key)
                else f"[{json.dumps(key)}]"
            )
            below = f"{path}.{key}"
            yield from places_of(below, f"{expression}{dotted}", plain(key), depth + 1, inner)


def variable(key: str) -> str:
    """Return how a template names a column."""
    return key if key.isidentifier() else f"row[{json.dumps(key, ensure_ascii=False)}]"


def is_chat(values: Sequence[Any]) -> bool:
    """Return whether every value is a list of chat messages, of either way to write them."""
    return bool(values) and all(
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict)
            and ("role" in each or {"from", "value"} <= each.keys())
            and (each.keys() & {"content", "value", "tool_calls"})
            for each in value
        )
        for value in values
    )


def last_roles(chat: Place) -> set[str]:
    """Return the roles of the last messages."""
    return {str(each[-1].get("role", each[-1].get("from"))) for each in chat.present}


def _objects_of(values: Iterable[Any]) -> list[Any]:
    """Return the members of lists, also of those that are written as JSON."""
    read = (
        json.loads(each) if isinstance(each, str) and is_json(each) else each for each in values
    )
    return [one for each in read for one in members(each)]


def are_functions(place: Place) -> bool:
    """Return whether a column defines what a model may call."""
    found = _objects_of(place.present) if place.name in _FUNCTION_NAMES else []
    return bool(found) and all(
        isinstance(one, dict) and (one.keys() & {"parameters", "description", "function"})
        for one in found
    )


def are_calls(values: Sequence[Any]) -> bool:
    """Return whether these are lists of calls: names, or objects with name and arguments."""
    found = _objects_of(values)
    are_lists = all(isinstance(each, list) or str(each).lstrip()[:1] == "[" for each in values)
    return (
        are_lists
        and bool(found)
        and all(
            isinstance(one, str) or (isinstance(one, dict) and {"name"} <= one.keys())
            for one in found
        )
    )


def last_of(chat: Place) -> Place:
    """Return what the last message says."""
    key = "value" if "from" in chat.present[0][-1] else "content"
    path = f"{chat.path}[-1].{key}"
    return Place(path, "", "", chat.depth, [value[-1].get(key) for value in chat.present])


def are_texts(values: Sequence[Any]) -> bool:
    """Return whether all are texts, of which one says something."""
    return all(isinstance(value, str) for value in values) and any(map(str.strip, values))


def are_lists_of_text(values: Sequence[Any]) -> bool:
    """Return whether all are lists of texts."""
    return bool(values) and all(is_list_of(value, str) for value in values)


def is_list_of(value: Any, kind: type) -> bool:
    """Return whether a value is a list of one type, and not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)


def first_of(values: Iterable[Any]) -> Any:
    """Return the first that is not null."""
    return next((value for value in values if value is not None), None)


def render_then_blank(place: Place) -> str:
    """Return the part of a template for a text and a blank line, where a row has it."""
    return _if_any(place, f"{render(place)}{BLANK_LINE}")


def blank_then_render(place: Place) -> str:
    """Return the part of a template for a blank line and a text, where a row has it."""
    return _if_any(place, f"{BLANK_LINE}{render(place)}")


def render(place: Place) -> str:
    """Return the expression of a template that writes a place."""
    if are_lists_of_text(place.present):
        return f'{{{{ {place.expression}|join("\\n") }}}}'
    if not are_texts(place.present):
        return f"{{{{ {place.expression}|tojson }}}}"
    return f"{{{{ {place.expression} }}}}"


def _if_any(place: Place, text: str) -> str:
    """Return a part of a template that some rows leave empty."""
    if all(place.values):
        return text
    return f"{{% if {place.expression} %}}{text}{{% endif %}}"


def sample(value: Any) -> str:
    """Return a value in short: of messages, their roles."""
    if isinstance(value, list) and is_chat([value]):
        roles = [str(each.get("role", each.get("from"))) for each in value]
        return brief(f"messages: {', '.join(roles)}", quoted=False, longest=_SAMPLE)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return brief(" ".join(text.split()), quoted=isinstance(value, str), longest=_SAMPLE)
