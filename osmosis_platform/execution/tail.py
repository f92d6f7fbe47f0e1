"""Files that a program of a user writes: opened only where they are files, and read as they grow.

The program may be another user's than the platform's: what looks like a file may lead elsewhere, or
let its reader wait.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

BLOCK = 1024 * 1024
LINE = 16 * 1024 * 1024
"""A longer line is no text: it and what follows are left out."""


def open_written(path: Path) -> BinaryIO:
    """Open a file to read; raise FileNotFoundError for links of both kinds, pipes and devices.

    A folder of it that is a link is not followed either.
    """
    if path.parent.is_symlink():
        raise FileNotFoundError(path)
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
    remove(path)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def remove(path: Path) -> None:
    """Remove what is at a path, if anything: a program may have made a folder there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy_masked(source: BinaryIO, target: Path, change: Callable[[str], str]) -> None:
    """Write a new file of what `change` makes of whole lines, many at once: most may be empty.

    It ends ahead of a line that is too long.
    """
    with new_file(target) as file:
        while block := source.read(BLOCK):
            block += (rest := source.readline(LINE))
            is_long = len(rest) == LINE
            text = block[: block.rfind(b"\n") + 1] if is_long else block
            file.write(change(text.decode("utf-8", "replace")).encode("utf-8", "replace"))
            if is_long:
                return


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
        try:
            source = open_written(self._path)
        except FileNotFoundError:
            source = io.BytesIO()
        with source:
            copy_masked(source, masked, redact)
        masked.replace(self._path)
