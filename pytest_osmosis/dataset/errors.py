"""What is said about a dataset that cannot be used.

    Exception
      DatasetError      the file or some of its rows are unusable; the session is a usage error
        EmptyDataset    the file is fine, but no row is selected
        UnclearDataset  its columns do not say what is the question, or the truth
      RecordError       one row is unusable; collected, listed in a DatasetError, never seen outside
        NotJson         it is not even JSON
        WrongColumns    its columns are not those of a row; in CSV, those of no row are
          UnclearColumns  what it lacks may be there under another name

Knows how a message is laid out; does not know what makes a row wrong, nor which option named the
file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..escaping import counted

LISTED = 20
"""How many kinds of wrong rows are written out; the rest is counted."""
PLACES_SHOWN = LISTED - 1
_PLACE = re.compile(r" \(column \d+\)")
"""What differs between rows of which the same is wrong."""


class DatasetError(Exception):
    """The dataset cannot be used; `str()` is the whole message, but for the option."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)
        """One sentence per listed wrong row, empty when the file itself is at fault."""


class EmptyDataset(DatasetError):
    """There is nothing to evaluate: no rows in the file, or none in the selection."""


class UnclearDataset(DatasetError):
    """The columns of no row say what the question or the truth is."""

    def __init__(self, sentence: str, proposed: str) -> None:
        """`proposed`: what the file has, and what may be said of it; lines."""
        super().__init__(f"{sentence}\n{proposed}", [sentence])
        self.sentence = sentence


class RecordError(Exception):
    """One row cannot be used; `str()` is the sentence, without the place."""


class NotJson(RecordError):
    """The row is not even JSON."""


class WrongColumns(RecordError):
    """The row lacks a column, or has two for the same."""


class UnclearColumns(WrongColumns):
    """The row may have what it lacks under another name, or in another place."""

    def __init__(self, short: str, more: str = "") -> None:
        """`more` is what helps where this row alone is wrong."""
        super().__init__(short + more)
        self.short = short


@dataclass(slots=True)
class _Kind:
    """Rows of which the same is wrong."""

    sentence: str
    """Of the first of them."""
    places: list[int]
    """Of the first of them, as many as are listed."""
    count: int = 1

    def add(self, place: int) -> None:
        self.count += 1
        if len(self.places) <= PLACES_SHOWN:
            self.places.append(place)

    def line(self, unit: str) -> str:
        """Return what is wrong, and where."""
        line = f"{unit} {self.places[0]}: {self.sentence}"
        if self.count == 1:
            return line
        others = self.places[1:]
        shown = ", ".join(map(str, others[:PLACES_SHOWN]))
        more = ", ..." if self.count - 1 > len(others) else ""
        where = f"{unit}{'s' * (self.count > 2)} {shown}{more}"
        return f"{line}; so {counted(self.count - 1, 'further row')} ({where})"


class Problems:
    """Collects wrong rows while a file is read, in memory bounded by `LISTED` kinds of them."""

    def __init__(self, path: str | os.PathLike[str], unit: Literal["line", "row"]) -> None:
        self.path = path
        self._path = quote(path)
        self.unit = unit
        self.count = 0
        self._kinds: dict[str, _Kind] = {}
        """Rows by what is wrong with them, wherever in the row that is."""
        self._unclear: list[UnclearColumns] = []

    def add(self, place: int, sentence: str, kind: str | None = None) -> None:
        """Note that the row at `place` (a line number from 1 or a row number from 0) is wrong.

        Rows of one `kind`, else of one sentence, are listed once.
        """
        self.count += 1
        key = _PLACE.sub("", sentence) if kind is None else kind
        if (found := self._kinds.get(key)) is not None:
            found.add(place)
        elif len(self._kinds) < LISTED:
            self._kinds[key] = _Kind(sentence, [place])

    def add_columns(self, place: int, error: WrongColumns) -> None:
        """Note that the row at `place` has not the columns of a row."""
        self._unclear += [error] if isinstance(error, UnclearColumns) else []
        self.add(place, str(error), error.short if isinstance(error, UnclearColumns) else None)

    @property
    def unclear(self) -> UnclearColumns | None:
        """The first row of which it is not clear which column is what, where all wrong are such."""
        return self._unclear[0] if 0 < self.count == len(self._unclear) else None

    def error(self, *, is_all: bool = False) -> DatasetError | None:
        """Everything that was noted as one error, or None when nothing was.

        `is_all`: no row is right.
        """
        if not self.count:
            return None
        [first, *others] = self._kinds.values()
        if is_all and 1 < self.count == first.count:
            problem = f"all {self.count:,} rows: {first.sentence}"
            return DatasetError(f"{self._path}: {problem}", [problem])
        problems = [kind.line(self.unit) for kind in (first, *others)]
        return DatasetError(self._message(problems), problems)

    def _message(self, problems: list[str]) -> str:
        [first, *_] = self._kinds.values()
        if self.count == 1:
            if self.unit == "line":
                return f"{self._path}:{first.places[0]}: {first.sentence}"
            return f"{self._path}: row {first.places[0]} (the first is row 0): {first.sentence}"
        origin = "" if self.unit == "line" else " (the first is row 0)"
        lines = [f"{self._path}: {self.count:,} rows cannot be used{origin}"]
        lines += [f"  {problem}" for problem in problems]
        if more := self.count - sum(kind.count for kind in self._kinds.values()):
            lines.append(f"  and {more} more")
        return "\n".join(lines)


def quote(path: str | os.PathLike[str]) -> str:
    """The path as it may stand in a message: quoted when a character could disturb a terminal."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)
