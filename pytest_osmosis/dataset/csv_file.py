"""CSV with a header: records of strings, written as JSON lines to an unnamed temporary file.

From there on they are rows like those of a JSONL file. Knows Python's csv module; does not judge
which columns a row needs. Files with another separator are a subclass with a `separator`, and its
entry in `formats.FORMATS`; a first line `sep=;` names one too.
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import BinaryIO, Literal

from ..escaping import counted
from .decoding import brief
from .errors import DatasetError, EmptyDataset, Problems, quote
from .sampling import Selection

LONGEST_CELL = 64 * 1024 * 1024
_BOM = "\ufeff"
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SEPARATOR_LINE = re.compile(r"sep=(.)")
"""The first line by which spreadsheets say what separates columns."""
_INDEX = "left out: the first column, of numbers without a name"
"""Said of the index that pandas writes."""
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class CsvSource:
    """An open CSV file as a source of rows."""

    separator = ","
    unit: Literal["line", "row"] = "line"
    torn = False

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = quote(path)
        self.rows_total: int | None = None
        self.notices: list[str] = []
        self._spool = tempfile.TemporaryFile(prefix="osmosis-")  # noqa: SIM115 - closed with the source
        self.descriptor = self._spool.fileno()

    def count(self, stop: int | None) -> int:
        """How many rows there are before row `stop`."""
        return sum(1 for _ in islice(self._records(), stop))

    def scan(
        self, selection: Selection | None, start: int, stop: int | None, problems: Problems
    ) -> Iterator[tuple[int, int, bytes]]:
        """Line number, offset and bytes of the rows from start to stop, or of the selected ones."""
        wanted = None if selection is None else set(selection)
        offset, row = 0, -1
        for row, (line, record) in enumerate(self._records()):
            if row == stop:
                break
            if row < start or (wanted is not None and row not in wanted):
                continue
            if isinstance(record, str):
                problems.add(line, record)
                continue
            raw = _encode(record).encode()
            self._spool.write(raw + b"\n")
            yield line, offset, raw
            offset += len(raw) + 1
        else:
            self.rows_total = row + 1
        self._spool.flush()

    def close(self) -> None:
        """Close both files; a duplicate of the spool's descriptor keeps the rows."""
        self._file.close()
        self._spool.close()

    def _records(self) -> Iterator[tuple[int, dict[str, str] | str]]:
        """Yield the first line of each row, and the row or what is wrong with it."""
        with _long_cells():
            rows = self._rows()
            names = self._header(rows)
            for line, cells in rows:
                if isinstance(cells, str):
                    yield line, cells
                elif len(cells) != len(names):
                    yield (
                        line,
                        f"has {counted(len(cells), 'cell')}; the header has {len(names)} columns",
                    )
                else:
                    record = dict(zip(names, cells, strict=True))
                    record.pop("", "")
                    # Spreadsheets leave columns without a name, and nothing in them.
                    nameless = [cell for cell in _nameless(names, cells) if cell]
                    if not names[0] and nameless == [cells[0]] and cells[0].isdecimal():
                        self._note(_INDEX)
                        nameless = []
                    if not nameless:
                        yield line, record
                    else:
                        yield line, "has text in a column without a name: name it in the header"

    def _header(self, rows: Iterator[tuple[int, list[str] | str]]) -> list[str]:
        line, names = next(rows, (1, []))
        if isinstance(names, str):
            raise DatasetError(f"{self._path}:{line}: {names}")
        if not names:
            raise EmptyDataset(f"{self._path}: has no rows (only blanks)")
        named = filter(None, names)
        double = [brief(name) for name, times in Counter(named).items() if times > 1]
        if double:
            raise DatasetError(
                f"{self._path}:{line}: the column {', '.join(double)} is there more than once"
            )
        return names

    def _rows(self) -> Iterator[tuple[int, list[str] | str]]:
        header = next(filter(str.strip, self._lines()), "")
        lines = self._lines()
        first = next(lines, "")
        named = _SEPARATOR_LINE.fullmatch(first.rstrip("\r\n"))
        if named is None:
            lines = chain([first], lines)
        separator = named[1] if named is not None else self._separator(header)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        before = 0 if named is None else 1  # lines that the reader has not seen
        line = before + 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield line, _explained(error)
            else:
                if cells:  # else the line is blank
                    yield line, cells
            line = before + reader.line_num + 1

    def _separator(self, header: str) -> str:
        """Return what separates the columns; said where the file's name says otherwise."""
        if self.separator in header:
            return self.separator
        found = next((sign for sign in _SEPARATORS if sign in header), self.separator)
        if found != self.separator:
            self._note(f"its columns are separated by {_SEPARATORS[found]}")
        return found

    def _note(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)

    def _lines(self) -> Iterator[str]:
        self._file.seek(0)
        for number, line in enumerate(iter(partial(self._file.readline, LONGEST_CELL), b""), 1):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                from .converting import as_utf8  # only for a mistake

                command = as_utf8(self._path, "WINDOWS-1252")
                raise DatasetError(
                    f"{self._path}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at column "
                    f"{error.start + 1}): save the file as UTF-8"
                    + (f"; if it is Windows-1252:\n  {command}" if command else "")
                ) from None
            yield text.removeprefix(_BOM) if number == 1 else text


class TsvSource(CsvSource):
    """An open file of columns separated by tabs."""

    separator = "\t"

    def _rows(self) -> Iterator[tuple[int, list[str] | str]]:
        """Yield rows: lines, where all have as many cells as the header; else as in CSV.

        Most programs that write such files quote nothing: a quote at the beginning of a cell is
        text then, unless the whole cell is in quotes.
        """
        widths = {line.count("\t") for line in self._lines() if line.strip()}
        if len(widths) != 1 or widths == {0}:
            yield from super()._rows()
            return
        for number, line in enumerate(self._lines(), 1):
            if line.strip():
                yield number, [_unquoted(cell) for cell in line.rstrip("\r\n").split("\t")]


def _unquoted(cell: str) -> str:
    quoted = _QUOTED.fullmatch(cell)
    return cell if quoted is None else quoted[1].replace('""', '"')


def _nameless(names: list[str], cells: list[str]) -> Iterator[str]:
    return (cell for name, cell in zip(names, cells, strict=True) if not name)


def _explained(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text:
        return "a quote that is opened here is never closed"
    if "expected after" in text:
        return 'not CSV: text follows a closing quote; write a quote inside a cell twice ("")'
    return f"not CSV: {text}"


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell be as long as a line of JSONL; the limit is the process's."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)
