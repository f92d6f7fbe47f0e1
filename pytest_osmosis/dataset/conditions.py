"""Which rows are wanted by what a column holds: `lang=en`, `ground_truth!=`.

Pure: knows one record at a time; a column is one of that name, a place within the row, or what
serves as a role.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..escaping import counted
from .columns import columns_shown
from .decoding import brief, is_blank
from .places import find_place

_Finder = Callable[[Mapping[str, Any]], Any]
_SHOWN = 6
_EXPECTED = "expected COLUMN=VALUE or COLUMN!=VALUE, such as lang=en; an empty value is a blank one"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; a null, a text of blanks and an empty list or object are the value ""."""

    text: str
    column: str
    value: str
    is_wanted: bool
    """Whether rows with the value are taken, or those without."""

    def holds(self, value: object, written: Callable[[], object]) -> bool:
        """Return whether a row is taken; `written` returns its number as it is written."""
        return _equals(value, self.value, written) is self.is_wanted


def parse_condition(text: str) -> Condition:
    """Return what "lang=en" asks for; ValueError when it asks for nothing that there is."""
    column, found, value = text.partition("=")
    column, value = column.strip(), value.strip()
    is_wanted = not column.endswith("!")
    column = column.removesuffix("!").strip()
    if not found or not column:
        raise ValueError(_EXPECTED)
    if column[-1] in "<>~" or value.startswith("="):
        raise ValueError(f"only = and != compare; {_EXPECTED}")
    return Condition(text, column, value, is_wanted)


def _equals(value: object, text: str, written: Callable[[], object]) -> bool:
    if not text or is_blank(value):
        return not text and is_blank(value)
    if isinstance(value, str):
        return value.strip() == text
    if isinstance(value, bool):
        return text.lower() == ("true" if value else "false")
    if isinstance(value, (int, float)):
        return text == written() or _as_number(text) == value
    return bool(_as_json(text) == value)


def _as_number(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except (ValueError, OverflowError):
            continue
        return number if math.isfinite(number) else None
    return None


def _as_json(text: str) -> Any:
    import json  # only for lists and objects

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class Matching:
    """Finds the rows that all conditions hold for, and what to say where there are none."""

    def __init__(self, texts: Iterable[str], roles: Mapping[str, str]) -> None:
        """`roles`: the column that serves as each role, where one does under another name."""
        self._conditions = [parse_condition(text) for text in texts]
        self._roles = roles
        self.rows = array("q")
        """The positions in the file of those that were found, ascending."""
        self.total = 0
        """The rows that were looked at."""
        self._columns: dict[str, None] = {}
        self._met: set[str] = set()
        """The conditions whose column was there."""
        self._values: dict[str, dict[str, None]] = {each.text: {} for each in self._conditions}
        """Values of each, for messages."""
        self._finders: dict[tuple[str, ...], list[_Finder | None]] = {}

    def look(self, record: Mapping[str, Any], written: Callable[[], Mapping[str, Any]]) -> None:
        """Take the next row of the file, or leave it out."""
        keys = tuple(record)
        finders = self._finders.get(keys)
        if finders is None:
            self._columns.update(dict.fromkeys(keys))
            finders = [self._finder(each.column, keys) for each in self._conditions]
            self._finders = {keys: finders}  # rows mostly have the columns of the one before
        is_taken = True
        for each, find in zip(self._conditions, finders, strict=True):
            value = None if find is None else find(record)
            if find is not None and (value is not None or each.column in keys):
                self._met.add(each.text)
            if len(self._values[each.text]) <= _SHOWN:
                self._values[each.text].setdefault(_shown(value))
            is_taken = is_taken and each.holds(value, lambda find=find: str(find(written())))  # type: ignore[misc]
        if is_taken:
            self.rows.append(self.total)
        self.total += 1

    def _finder(self, name: str, keys: Collection[str]) -> _Finder | None:
        """Return what finds a condition's value in a row, if the row has the column."""
        column = name if name in keys else self._roles.get(name, name)
        if column not in keys:
            if place := find_place(column, keys):
                return place.value
            plain = [key for key in keys if key.strip().lower() == column.lower()]
            if not plain:
                return None
            column = plain[0]
        return lambda record: record[column]

    @property
    def text(self) -> str:
        """All conditions, for messages."""
        return " and ".join(each.text for each in self._conditions)

    @property
    def summary(self) -> str:
        """What is left of the file."""
        rows = counted(self.total, "row")
        return f"{len(self.rows):,} of {rows}: where {self.text}"

    def problem(self) -> str | None:
        """Return why the conditions cannot be used, once all rows were looked at."""
        unmet = next((each for each in self._conditions if each.text not in self._met), None)
        if unmet is not None:
            shown = columns_shown((*self._columns,), [unmet.column])
            return f"no row has the column {brief(unmet.column)} of {unmet.text} ({shown})"
        if self.rows:
            return None
        held = []
        for each in self._conditions:
            first = list(self._values[each.text])
            more_of_it = " and others" if len(first) > _SHOWN else ""
            held.append(f"{each.column} is {', '.join(first[:_SHOWN])}{more_of_it}")
        return f"no row is left where {self.text}: {'; '.join(held)}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return brief(value.strip(), quoted=not value.strip())
    import json

    return brief(json.dumps(value, ensure_ascii=False), quoted=False)
