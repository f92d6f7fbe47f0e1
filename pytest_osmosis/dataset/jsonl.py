"""JSONL: the lines of a file that hold a row, one at a time.

Knows lines, blanks and the byte order mark; does not parse what a line holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, Literal

from .errors import DatasetError, Problems, quote
from .sampling import Selection

LONGEST_LINE = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class JsonlSource:
    """An open JSONL file as a source of rows."""

    unit: Literal["line", "row"] = "line"

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = path
        self.rows_total: int | None = None
        self.notices: list[str] = []
        self.descriptor = file.fileno()
        self.torn = False
        """Whether the last line that was read has no end."""

    def count(self, stop: int | None) -> int:
        """How many rows there are before row `stop`."""
        rows = sum(1 for _ in islice(self._lines(), stop))
        self._ended(rows, stop)
        return rows

    def scan(
        self, selection: Selection | None, start: int, stop: int | None, problems: Problems
    ) -> Iterator[tuple[int, int, bytes]]:
        """Line number, offset and bytes of the rows from start to stop, or of the selected ones."""
        wanted = iter(selection) if selection is not None else None
        following = next(wanted, None) if wanted is not None else None
        row = 0
        if stop is not None and stop <= start:
            return
        for number, offset, line in self._lines():
            if wanted is not None:
                if row == following:
                    yield number, offset, line
                    following = next(wanted, None)
                    if following is None:
                        return
            elif row >= start:
                yield number, offset, line
            row += 1
            if row == stop:
                break
        self._ended(row, stop)

    def close(self) -> None:
        """Close the file; a duplicate of its descriptor keeps the rows."""
        self._file.close()

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        self._file.seek(0)
        offset = 0
        for number, line in enumerate(iter(partial(self._file.readline, LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise DatasetError(f"{quote(self._path)}:{number}: the line is longer than 64 MiB")
            skipped = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
            row = line[skipped:].strip()
            if row:
                self.torn = not line.endswith(b"\n")
                yield number, offset + line.index(row[:1], skipped), row
            offset += len(line)

    def _ended(self, rows: int, stop: int | None) -> None:
        if stop is None or rows < stop or self._file.tell() >= os.fstat(self.descriptor).st_size:
            self.rows_total = rows
