"""The formats of datasets, one table.

A new format is one entry in `FORMATS` and the module of its source; the messages, the help and the
commands list what the table has. Every pytest session imports this: it imports no other module of
ours. `opening` finds the format of a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

if TYPE_CHECKING:
    from .errors import Problems
    from .sampling import Selection


class RowSource(Protocol):
    """One open file of one format."""

    unit: Literal["line", "row"]
    """What a place in a message is: a line number from 1, or a row number from 0."""
    torn: bool
    """Whether the last row that was read has no end of line."""
    rows_total: int | None
    """The rows of the file; None while that is not known."""
    descriptor: int
    """Where the bytes of the rows are."""

    notices: list[str]
    """What users should know of how it was read."""

    def count(self, stop: int | None) -> int:
        """Return how many rows there are before row `stop`."""

    def scan(
        self, selection: Selection | None, start: int, stop: int | None, problems: Problems
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield place, offset and bytes of the rows from start to stop, or of the selected ones."""

    def close(self) -> None:
        """Release the file."""


@dataclass(frozen=True, slots=True)
class DatasetFormat:
    """One format."""

    suffix: str
    source: str
    """Module in this package and class, `jsonl:JsonlSource`: loaded when a file needs it."""
    magic: bytes = b""
    """First bytes of every file of a binary format; text has none."""
    has_only_text: bool = False
    """Whether every value is a string: an empty ground truth is none then."""
    holds_records: bool = False
    """Whether recorded answers, which a rubric judges, may be kept in it too."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.suffix.removeprefix(".")

    def open(self, file: BinaryIO, path: Path) -> RowSource:
        """Return the source of the rows of an open file."""
        module, _, name = self.source.partition(":")
        source: RowSource = getattr(importlib.import_module(f".{module}", __package__), name)(
            file, path
        )
        return source


FORMATS = (
    DatasetFormat(".jsonl", "jsonl:JsonlSource", holds_records=True),
    DatasetFormat(".json", "json_array:JsonArraySource", holds_records=True),
    DatasetFormat(".csv", "csv_file:CsvSource", has_only_text=True),
    DatasetFormat(".tsv", "csv_file:TsvSource", has_only_text=True),
    DatasetFormat(".parquet", "parquet:ParquetSource", magic=b"PAR1"),
)


def _suffixes(formats: Iterable[DatasetFormat]) -> str:
    *most, last = (each.suffix for each in formats)
    return f"{', '.join(most)} or {last}" if most else last


SUFFIXES = tuple(each.suffix for each in FORMATS)
SUFFIXES_SHOWN = _suffixes(FORMATS)
"""For help and messages: `.jsonl, .json, .csv, .tsv or .parquet`."""
RECORD_SUFFIXES_SHOWN = _suffixes(each for each in FORMATS if each.holds_records)
"""Likewise, of the formats that hold records for a rubric."""
ACCEPTED = f"a {SUFFIXES_SHOWN} file"
