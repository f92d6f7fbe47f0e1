"""What is said about a dataset that cannot be used.

    Exception
      DatasetError      the file or some of its rows are unusable; the session is a usage error
        EmptyDataset    the file is fine, but no row is selected
      RecordError       one row is unusable; collected, listed in a DatasetError, never seen outside
        NotJson         it is not even JSON
        WrongColumns    its columns are not those of a row; in CSV, those of no row are

Knows how a message is laid out; does not know what makes a row wrong, nor which option named the
file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

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


class RecordError(Exception):
    """One row cannot be used; `str()` is the sentence, without the place."""


class NotJson(RecordError):
    """The row is not even JSON."""


class WrongColumns(RecordError):
    """The row lacks a column, or has two for the same."""


class Problems:
    """Collects wrong rows while a file is read, in memory bounded by `LISTED`."""

    def __init__(self, path: str | os.PathLike[str], unit: Literal["line", "row"]) -> None:
        self.path = path
        self._path = quote(path)
        self.unit = unit
        self._listed: list[tuple[int, str]] = []
        self.count = 0
        self._columns: tuple[str, int] = ("", 0)

    def add(self, place: int, sentence: str) -> None:
        """Note that the row at `place` (a line number from 1 or a row number from 0) is wrong."""
        self.count += 1
        if len(self._listed) < LISTED:
            self._listed.append((place, sentence))

    def add_columns(self, place: int, sentence: str) -> None:
        """Note that the row at `place` has not the columns of a row."""
        first, times = self._columns
        self._columns = (first or sentence, times + (sentence == (first or sentence)))
        self.add(place, sentence)

    def error(self, *, is_all: bool = False) -> DatasetError | None:
        """Everything that was noted as one error, or None when nothing was.

        `is_all`: no row is right; columns that are wrong alike in all of them are listed once.
        """
        if not self.count:
            return None
        sentence, times = self._columns
        if is_all and 1 < self.count == times:
            problem = f"all {times:,} rows: {sentence}"
            return DatasetError(f"{self._path}: {problem}", [problem])
        problems = self._problems()
        return DatasetError(self._message(problems), problems)

    def _problems(self) -> list[str]:
        return [f"{self.unit} {place}: {sentence}" for place, sentence in self._listed]

    def _message(self, problems: list[str]) -> str:
        if self.count == 1:
            place, sentence = self._listed[0]
            if self.unit == "line":
                return f"{self._path}:{place}: {sentence}"
            return f"{self._path}: row {place} (the first is row 0): {sentence}"
        origin = "" if self.unit == "line" else " (the first is row 0)"
        lines = [f"{self._path}: {self.count:,} rows cannot be used{origin}"]
        lines += [f"  {problem}" for problem in problems]
        if self.count > len(problems):
            lines.append(f"  and {self.count - len(problems)} more")
        return "\n".join(lines)


def quote(path: str | os.PathLike[str]) -> str:
    """The path as it may stand in a message: quoted when a character could disturb a terminal."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)
