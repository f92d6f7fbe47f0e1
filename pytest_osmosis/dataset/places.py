"""Places within a row, as text names them: `reward_model.ground_truth`, `messages[-1].content`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")


@dataclass(frozen=True, slots=True)
class Place:
    """A place within a row."""

    text: str
    parts: tuple[str | int, ...]
    """The column, then names and positions; a negative position counts from the end."""

    def value(self, record: Mapping[str, Any]) -> Any:
        """Return what stands there, None where nothing does."""
        value: Any = record
        for part in self.parts:
            if isinstance(part, int):
                is_there = isinstance(value, list) and -len(value) <= part < len(value)
                value = value[part] if is_there else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value


def find_place(text: str, keys: Collection[str]) -> Place | None:
    """Return the place that a text names within a row, if it begins with a column."""
    begins = [key for key in keys if text.startswith(key) and text[len(key) : len(key) + 1] in ".["]
    for key in sorted(begins, key=len, reverse=True):
        rest = text[len(key) :]
        steps = list(_STEP.finditer(rest))
        if "".join(step[0] for step in steps) == rest:
            names = (step[1] if step[1] is not None else int(step[2]) for step in steps)
            return Place(text, (key, *names))
    return None


def with_places(record: Mapping[str, Any], places: Iterable[Place]) -> dict[str, Any]:
    """Return a row with what stands at these places, under their own texts."""
    return {**record, **{place.text: place.value(record) for place in places}}
