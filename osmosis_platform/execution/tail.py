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
    """Open a file to read; raise FileNotFoundError for a link, a pipe and a device too."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise FileNotFoundError(path) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileNotFoundError(path)
    return open(number, "rb")


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
        masked.touch(mode=0o600)
        with masked.open("w", encoding="utf-8") as file:
            for lines in TailedFile(self._path).rest():
                file.writelines(redact(line.decode("utf-8", "replace")) for line in lines)
        masked.replace(self._path)
