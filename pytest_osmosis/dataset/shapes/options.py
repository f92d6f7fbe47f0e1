"""What an answer is chosen from: options in a list, an object, or columns of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from osmosis_ai.option_reading import has_letters

from ..column_names import OPTION_STEMS, plain
from ..columns import LABEL
from ..truths import LETTER, is_json
from .places import NEW_LINE, Place, is_list_of

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LABELLED = re.compile(r"\s*(?:\(?[A-Za-z]\)|[A-Za-z][.:]\s)")
_SUFFIXED = re.compile(r"(.*?)([a-j]|[0-9])")


@dataclass(frozen=True, slots=True)
class Options:
    """What an answer is chosen from: in a list, an object, or columns of their own."""

    places: tuple[Place, ...]
    column: str
    """The column that has them, as the scorer names it; empty where the prompt alone has them."""
    template: str
    counts: tuple[int, ...]
    """How many each row has."""
    names: tuple[frozenset[str], ...]
    """Their labels and texts in each row, as far as the scorer knows them."""
    are_listed: bool = False
    """Whether a number that is no text is an index from 0, without a word about it."""
    right: Place | None = None
    """Where the right one stands among them."""

    @classmethod
    def within(cls, place: Place) -> Options | None:
        """Return the options that one column has; None where it has none."""
        rows = place.values
        if all(isinstance(row, str) and row.strip() for row in rows):
            return cls._written(place)
        if all(is_list_of(row, str) and len(row) > 1 for row in rows):
            return cls._listed(place, place.expression, rows)
        if all(is_list_of(row, dict) and len(row) > 1 for row in rows):
            return cls._objects(place)
        if not all(isinstance(row, dict) and len(row) > 1 for row in rows):
            return None
        if all(is_list_of(row.get("text"), str) for row in rows):
            labels = [row.get("label") or [] for row in rows]
            label = f"{place.expression}.label[loop.index0]" if all(labels) else ""
            texts = [row["text"] for row in rows]
            return cls._listed(place, f"{place.expression}.text", texts, label, labels)
        if all(is_list_of(row.get("choices"), str) and "labels" in row for row in rows):
            return cls._marked(place)
        if all(isinstance(text, str) for row in rows for text in row.values()):
            loop = f"{{% for label, option in {place.expression}.items() %}}"
            template = f"{loop}{NEW_LINE}{{{{ label }}}}. {{{{ option }}}}{{% endfor %}}"
            return cls._named(place, template, [{*row, *row.values()} for row in rows], rows)
        return None

    @classmethod
    def _written(cls, place: Place) -> Options | None:
        """Return options in a text that is JSON, or has letters before them."""
        rows = [json.loads(text) if is_json(text) else None for text in place.values]
        found = None if None in rows else cls.within(place._replace(values=rows))
        if found is None and not all(map(has_letters, place.values)):
            return None
        if found is None:
            letters = frozenset((*_LETTERS, *_LETTERS.lower()))
            found = cls((place,), "", "", (0,) * len(rows), (letters,) * len(rows))
        return replace(found, template=f"{NEW_LINE}{{{{ {place.expression} }}}}")

    @classmethod
    def _named(
        cls, place: Place, template: str, names: Iterable[set[str]], rows: Sequence[Any]
    ) -> Options:
        column = place.path if place.depth == 0 else ""
        known = tuple(frozenset(each) if column else frozenset() for each in names)
        return cls((place,), column, template, tuple(map(len, rows)), known)

    @classmethod
    def _listed(
        cls,
        place: Place,
        items: str,
        rows: Sequence[list[str]],
        label: str = "",
        labels: Sequence[list[str]] = (),
    ) -> Options:
        label = label or f'"{_LETTERS[: max(10, *map(len, rows))]}"[loop.index0]'
        are_labelled = all(_LABELLED.match(text) for row in rows for text in row)
        mark = "" if are_labelled else f"{{{{ {label} }}}}. "
        loop = f"{{% for option in {items} %}}{NEW_LINE}{mark}{{{{ option }}}}{{% endfor %}}"
        own = labels or [[] for _ in rows]
        names = [{*row, *map(str, more)} for row, more in zip(rows, own, strict=True)]
        return replace(cls._named(place, loop, names, rows), are_listed=place.depth == 0)

    @classmethod
    def _objects(cls, place: Place) -> Options | None:
        """Return options that are objects with a label and a text each."""
        keys = place.present[0][0].keys()
        label = next((key for key in ("label", "key", "id") if key in keys), None)
        text = next((key for key in ("text", "content", "value") if key in keys), None)
        if label is None or text is None:
            return None
        line = f"{{{{ option.{label} }}}}. {{{{ option.{text} }}}}"
        loop = f"{{% for option in {place.expression} %}}{NEW_LINE}{line}{{% endfor %}}"
        names = [
            {str(one.get(key)) for one in row for key in (label, text)} for row in place.values
        ]
        return cls._named(place, loop, names, place.values)

    @classmethod
    def _marked(cls, place: Place) -> Options | None:
        """Return the right one of options that are marked by 1 and 0, where it is the first."""
        if not all(row["labels"][:1] == [1] for row in place.values):
            return None
        texts = [row["choices"][0] for row in place.values]
        right = Place(f"{place.path}.choices[0]", "", "choices", 1, texts)
        return cls((place,), "", "", (), (), right=right)

    @classmethod
    def of_columns(cls, places: Sequence[Place]) -> Options | None:
        """Return the options that have a column each."""
        stems = set(map(plain, OPTION_STEMS))
        groups: dict[str, dict[str, Place]] = {}
        for place in places:
            match = _SUFFIXED.fullmatch(place.name)
            if match and match[1] in stems and None not in place.values:
                groups.setdefault(match[1], {})[match[2]] = place
        for group in groups.values():
            first = next((each for each in "a01" if each in group), "")
            suffixes = [chr(ord(first) + at) for at in range(len(group))] if first else []
            if len(group) < 2 or not group.keys() <= set(suffixes):
                continue
            columns = [group[suffix] for suffix in suffixes]
            template = "".join(
                f"{NEW_LINE}{letter}. {{{{ {each.expression} }}}}"
                for letter, each in zip(_LETTERS, columns, strict=False)
            )
            rows = len(columns[0].values)
            return cls(tuple(columns), "", template, (len(columns),) * rows, (frozenset(),) * rows)
        return None

    def unlabelled(self) -> Options:
        """Return it without letters, which would be answers that the scorer does not know."""
        if len(self.places) < 2:
            return self
        return replace(self, template=re.sub(r"\b[A-Z]\. (?=\{\{)", "- ", self.template))

    def base(self, truth: Place) -> int | str | None:
        """Return by what the truths name options: an index from 0 or 1, or "" for what is clear.

        None where they name none.
        """
        if self.right is not None:
            return None
        indices: list[tuple[int, int]] = []
        are_numbers = True
        for value, count, names in zip(truth.values, self.counts, self.names, strict=True):
            if value is None or value == "":
                continue
            if isinstance(value, (bool, list, dict)):
                return None
            text = str(value).strip()
            letter = LETTER.fullmatch(text)
            if text in names or (letter and _LETTERS.index(letter[1].upper()) < count):
                continue
            if not text.isdecimal() or int(text) > count:
                return None
            are_numbers = are_numbers and not isinstance(value, str)
            indices.append((int(text), count))
        if not indices:
            return ""
        lowest, reaches_count = min(indices)[0], any(index == count for index, count in indices)
        if lowest == 0 and reaches_count:
            return None
        if reaches_count:
            return 1
        if self.are_listed:
            return "" if are_numbers else 0
        return 1 if lowest and truth.name != LABEL else 0
