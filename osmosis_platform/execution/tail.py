"""Files that a program of a user writes: opened only where they are files, and read as they grow.

The program may be another user's than the platform's: what looks like a file may lead elsewhere, or
let its reader wait.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

BLOCK = 1024 * 1024


def open_written(path: Path) -> BinaryIO:
    """Open a file to read; raise FileNotFoundError for links of both kinds, pipes and devices."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise FileNotFoundError(path) from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(number)
        raise FileNotFoundError(path)
    return open(number, "rb")


def new_file(path: Path) -> BinaryIO:
    """Open a new file for its owner alone, in place of whatever there is of this name."""
    path.unlink(missing_ok=True)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


class TailedFile:
    """A file that another process appends lines to."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._begun = b""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines that were ended since the last time, at most so many as a block has."""
        try:
            with open_written(self._path) as file:
                file.seek(self._offset)
                block = file.read(BLOCK)
        except FileNotFoundError:
            return
        self._offset += len(block)
        *whole, self._begun = (self._begun + block).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(self._begun) > BLOCK:
            self._begun = b""  # no line of text

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield all lines that were ended since the last time, a block at a time."""
        offset = -BLOCK
        while self._offset - offset >= BLOCK:
            offset = self._offset
            yield [*self.lines()]

    def rest(self) -> Iterator[list[bytes]]:
        """Yield what is left of a file that is complete, a block at a time; also a last line
        that was not ended.
        """
        yield from self.blocks()
        if self._begun:
            yield [self._begun]
            self._begun = b""

    def mask(self, redact: Callable[[str], str]) -> None:
        """Replace the file, which is complete, by one whose lines are masked."""
        if not self._path.exists():
            return
        masked = self._path.with_name(f"{self._path.name}.masked")
        with new_file(masked) as file:
            for lines in TailedFile(self._path).rest():
                for line in lines:
                    file.write(redact(line.decode("utf-8", "replace")).encode("utf-8", "replace"))
        masked.replace(self._path)
