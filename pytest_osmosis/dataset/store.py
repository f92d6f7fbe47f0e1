"""Where each selected row lies in a file: sixteen bytes a row, and the row's bytes on demand.

Knows offsets and lengths; does not know what the bytes mean. Safe to read from several threads.
"""

from __future__ import annotations

import os
import weakref
import zlib
from array import array


class ChangedError(Exception):
    """The bytes at a row's place are no longer those that were read when the dataset was loaded."""


class RowStore:
    """The selected rows of one open file, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offsets = array("q")
        self._lengths = array("I")
        self._checksums = array("I")
        self.close = weakref.finalize(self, os.close, descriptor)
        """Gives the file back, at the latest when the store is no longer used."""

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, raw: bytes) -> None:
        """Remember that the next row is `raw` and starts at `offset`."""
        self._offsets.append(offset)
        self._lengths.append(len(raw))
        self._checksums.append(zlib.crc32(raw))

    def fetch(self, position: int) -> bytes:
        """The bytes of a row; ChangedError if the file holds others by now."""
        raw = os.pread(self._descriptor, self._lengths[position], self._offsets[position])
        if zlib.crc32(raw) != self._checksums[position]:
            raise ChangedError
        return raw
