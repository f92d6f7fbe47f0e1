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
from collections.abc import Sequence
from typing import Literal

from ..escaping import counted

LISTED = 20
"""How many wrong rows are written out; the rest is counted."""


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


class Problems:
    """Collects wrong rows while a file is read, in memory bounded by `LISTED`."""

    def __init__(self, path: str | os.PathLike[str], unit: Literal["line", "row"]) -> None:
        self.path = path
        self._path = quote(path)
        self.unit = unit
        self._listed: list[tuple[int, str]] = []
        self.count = 0
        self._columns: dict[str, list[int]] = {}
        """The places of rows by what is wrong with their columns."""
        self._unclear: list[UnclearColumns] = []

    def add(self, place: int, sentence: str) -> None:
        """Note that the row at `place` (a line number from 1 or a row number from 0) is wrong."""
        self.count += 1
        if len(self._listed) < LISTED:
            self._listed.append((place, sentence))

    def add_columns(self, place: int, error: WrongColumns) -> None:
        """Note that the row at `place` has not the columns of a row; alike ones are listed once."""
        self._unclear += [error] if isinstance(error, UnclearColumns) else []
        sentence = error.short if isinstance(error, UnclearColumns) else str(error)
        places = self._columns.setdefault(sentence, [])
        places.append(place)
        if len(places) == 1:
            self.add(place, str(error))
        else:
            self.count += 1

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
        if is_all and 1 < self.count == max(map(len, self._columns.values()), default=0):
            problem = f"all {self.count:,} rows: {self._listed[0][1]}"
            return DatasetError(f"{self._path}: {problem}", [problem])
        problems = self._problems()
        return DatasetError(self._message(problems), problems)

    def _problems(self) -> list[str]:
        further = {places[0]: len(places) - 1 for places in self._columns.values()}
        return [
            f"{self.unit} {place}: {sentence}"
            + (f"; so {counted(further[place], 'further row')}" if further.get(place) else "")
            for place, sentence in self._listed
        ]

    def _message(self, problems: list[str]) -> str:
        if self.count == 1:
            place, sentence = self._listed[0]
            if self.unit == "line":
                return f"{self._path}:{place}: {sentence}"
            return f"{self._path}: row {place} (the first is row 0): {sentence}"
        origin = "" if self.unit == "line" else " (the first is row 0)"
        lines = [f"{self._path}: {self.count:,} rows cannot be used{origin}"]
        lines += [f"  {problem}" for problem in problems]
        alike = sum(len(places) - 1 for places in self._columns.values())
        if more := self.count - alike - len(problems):
            lines.append(f"  and {more} more")
        return "\n".join(lines)


def quote(path: str | os.PathLike[str]) -> str:
    """The path as it may stand in a message: quoted when a character could disturb a terminal."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)
