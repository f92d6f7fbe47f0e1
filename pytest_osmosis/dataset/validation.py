"""What a pass over the rows leaves behind: where they are, what they are called, and their digest.

Knows one row at a time; does not know formats, nor what is done about wrong rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from .columns import Columns
from .decoding import brief, decode
from .errors import LISTED
from .sampling import Selection


class Reading:
    """One pass over the selected rows, with checks or without; the result is the same."""

    def __init__(self, store: RowStore, columns: Columns) -> None:
        self.store = store
        self.columns = columns
        self._hash = hashlib.sha256()
        self._places: dict[str, int] | None = {}  # by id; None once a row without an id was met
        self._double: list[tuple[int, str, int]] = []
        self.notices: list[str] = []
        """What users should know of how the rows were read."""
        self.tasks = 0
        """How many rows have an object in the column `metadata`."""
        self.without_task = Lacking()
        """The first of the others."""
        self.without_question = Lacking()
        self.ends_answered = Lacking()
        """The first whose messages end with an assistant's turn."""
        self.lost: dict[str, Lacking] = {}
        """The first whose messages have what one question as text has not, by what that is."""

    def check(self, place: int, offset: int, raw: bytes) -> None:
        """Take a row if it is right; RecordError if it is wrong."""
        row = self.columns.check(decode(raw))
        if row.has_task:
            self.tasks += 1
        elif self.without_task.is_short:
            self.without_task.add(place)
        if not row.has_question:
            self.without_question.add(place)
        if row.ends_answered:
            self.ends_answered.add(place)
        if row.lost:
            self.lost.setdefault(row.lost, Lacking()).add(place)
        if self._places is not None:
            self._named(place, row.row_id)
        self._take(place, offset, raw)

    def note(self, place: int, offset: int, raw: bytes) -> None:
        """Take a row that another process has checked; parsed only while ids are to be found."""
        if self._places is not None:
            try:
                row_id = self.columns.row_id(json.loads(raw))
            except (ValueError, AttributeError, TypeError, RecursionError):
                row_id = None  # no longer the file that was checked: the digest says so
            self._named(len(self.store), row_id)
            if self._double:
                self._places = None
        self._take(place, offset, raw)

    def ids(self) -> list[str] | None:
        """The id of every row, if every row has one."""
        return list(self._places) if self._places is not None else None

    def digest(self, selection: Selection) -> str:
        """sha256 over the rows, a line end after each, and over their places unless 0 to n.

        It does not matter by which option the rows were selected.
        """
        whole = self._hash.copy()
        first = selection[0] if selection else 0
        if selection and selection[-1] - first != len(selection) - 1:
            whole.update(b"\0rows")
            for row in selection:
                whole.update(b" %d" % row)
        elif first:
            whole.update(f"\0from {first}".encode())
        return whole.hexdigest()

    def notice_double_ids(self, unit: str) -> Iterator[str]:
        """Let rows be named by their places where ids repeat, and yield a sentence about it."""
        if self._places is not None and self._double:
            place, row_id, first = self._double[0]
            yield (
                f"rows are named by their places: the id {brief(row_id)} is in {unit} {first} and "
                f"in {unit} {place}"
            )
            self._places = None

    def _named(self, place: int, row_id: str | None) -> None:
        if self._places is None:
            return
        if row_id is None:
            self._places = None
            self._double.clear()
            return
        first = self._places.setdefault(row_id, place)
        if first != place and not self._double:
            self._double.append((place, row_id, first))

    def _take(self, place: int, offset: int, raw: bytes) -> None:
        self._hash.update(raw + b"\n")
        self.store.add(place, offset, raw)


class Lacking:
    """Rows that lack something: where the first of them are."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self.is_short = True
        """Whether further ones are noted."""

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, place: int) -> None:
        """Note a row by its place: the number of a line from 1, or of a row from 0."""
        if self.is_short:
            self._places.append(place)
            self.is_short = len(self._places) < LISTED

    def named(self, unit: str) -> str:
        """Return "line 3", or "lines 3, 4 and others"."""
        more = "" if self.is_short else " and others"
        return f"{unit}{'s' * (len(self._places) > 1)} {', '.join(map(str, self._places))}{more}"


class ChangedError(Exception):
    """The bytes at a row's place are no longer those that were read when the dataset was loaded."""


DIGEST_LENGTH = 12
"""Characters of a row's digest."""
_BLOCK_BYTES = 1 << 15
"""Read at once: rows are fetched in order, mostly."""


class RowStore:
    """The selected rows of one open file, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._block = (0, b"")
        """Bytes of the file that were read, and where they start."""
        self._jumps, self._shifts = array("I"), array("I")
        """Positions from which on places are further from positions than before, and how far."""
        self._offsets = array("q")
        self._lengths = array("I")
        self._checksums = array("I")
        self._digests = bytearray()
        self.close = weakref.finalize(self, os.close, descriptor)
        """Gives the file back, at the latest when the store is no longer used."""

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, place: int, offset: int, raw: bytes) -> None:
        """Remember that the next row is `raw`, stands at `place` and starts at `offset`."""
        shift = place - len(self._offsets)
        if not self._shifts or self._shifts[-1] != shift:
            self._jumps.append(len(self._offsets))
            self._shifts.append(shift)
        self._offsets.append(offset)
        self._lengths.append(len(raw))
        self._checksums.append(zlib.crc32(raw))
        self._digests += hashlib.sha256(raw).digest()[: DIGEST_LENGTH // 2]

    def place(self, position: int) -> int:
        """The place of a row: its line from 1, or its number from 0 (`RowSource.unit`)."""
        return position + self._shifts[bisect_right(self._jumps, position) - 1]

    def digest(self, position: int) -> str:
        """The beginning of the sha256 of a row."""
        size = DIGEST_LENGTH // 2
        return self._digests[position * size : (position + 1) * size].hex()

    def fetch(self, position: int) -> bytes:
        """The bytes of a row; ChangedError if the file holds others by now."""
        checksum = self._checksums[position]
        raw = self._read(self._offsets[position], self._lengths[position])
        if zlib.crc32(raw) != checksum:
            raise ChangedError
        return raw

    def _read(self, offset: int, length: int) -> bytes:
        """Return bytes of the file; those that follow are read with them."""
        start, block = self._block
        if not start <= offset <= offset + length <= start + len(block):
            start, block = offset, os.pread(self._descriptor, max(length, _BLOCK_BYTES), offset)
            self._block = start, block
        return block[offset - start : offset - start + length]
