"""The files of datasets: parts as they arrive, and the whole once they are all there.

A folder has the id of its dataset as its name, so no name that a user chose is ever a path. A part
appears under its number and its etag only when it is complete, in place of one that came before; of
each one at a time arrives. So an upload has what was announced on disk, twice at most.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import Refused, busy, no_room
from ..locks import locked_if_free

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedPart:
    """A part that has arrived."""

    number: int
    """From 1."""
    etag: str
    size: int
    path: Path


class DatasetFiles:
    """The files of one dataset in the platform's data folder."""

    def __init__(self, data: Path, dataset_id: str, extension: str) -> None:
        self.folder = data.absolute() / "datasets" / dataset_id
        self.rows = self.folder / f"rows.{extension}"
        """The whole file, once it is complete."""

    def make(self) -> None:
        """Make the folder."""
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)

    def remove(self) -> None:
        """Remove everything; what is not there is no error."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def parts(self) -> list[ReceivedPart]:
        """Return the parts that have arrived, in order; of one that came twice the newest."""
        found: dict[int, ReceivedPart] = {}
        paths = sorted(self.folder.glob("part-*"), key=lambda path: path.stat().st_mtime_ns)
        for path in paths:
            _, number, etag = path.name.split("-")
            found[int(number)] = ReceivedPart(int(number), etag, path.stat().st_size, path)
        return [found[number] for number in sorted(found)]

    def receive(self, number: int) -> PartWriter:
        """Return what writes a part."""
        return PartWriter(self.folder, number)

    def assemble(self, parts: Sequence[ReceivedPart], check: Callable[[], None]) -> None:
        """Make the whole file of its parts, on disk before its name is there.

        Nothing is left of it where `check` raises, which is called between parts.
        """
        whole = self.folder / f"incoming-{secrets.token_hex(8)}"
        try:
            with _refusing(), _create(whole) as file:
                for part in parts:
                    check()
                    with part.path.open("rb") as source:
                        shutil.copyfileobj(source, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
                whole.replace(self.rows)
        finally:
            whole.unlink(missing_ok=True)

    def remove_parts(self) -> None:
        """Remove what the whole file was made of."""
        for kind in ("part", "incoming", "lock"):
            for path in self.folder.glob(f"{kind}-*"):
                path.unlink(missing_ok=True)


class PartWriter:
    """One part while it arrives; without `finish` nothing is left of it."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = f"{number:05d}"
        self._path = folder / f"incoming-{self._number}"
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._held = ExitStack()

    def __enter__(self) -> PartWriter:
        """Begin; refuse a part that arrives already."""
        with _refusing(), ExitStack() as held:
            lock = self._folder / f"lock-{self._number}"
            if not held.enter_context(locked_if_free(lock)):
                raise busy()
            for path in (lock, self._path):
                held.callback(path.unlink, missing_ok=True)
            self._path.unlink(missing_ok=True)  # of a process that was killed
            self._file = held.enter_context(_create(self._path))
            self._held = held.pop_all()
        return self

    def write(self, block: bytes) -> None:
        """Write the next bytes."""
        assert self._file is not None
        with _refusing():
            self._file.write(block)
        self._digest.update(block)

    def finish(self) -> str:
        """Put the part into place and return its etag."""
        assert self._file is not None
        etag = self._digest.hexdigest()[:32]
        with _refusing():
            self._file.flush()
            os.fsync(self._file.fileno())
            part = self._folder / f"part-{self._number}-{etag}"
            self._path.replace(part)
            for other in self._folder.glob(f"part-{self._number}-*"):
                if other != part:
                    other.unlink(missing_ok=True)
        return etag

    def __exit__(self, *_: object) -> None:
        self._held.close()


def _create(path: Path) -> BinaryIO:
    """Create a file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def upload_gone() -> Refused:
    """Return the refusal of a part of an upload that has ended."""
    return Refused(404, "upload_ended", "there is no such upload: it was completed or aborted")


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what a full disk, or the end of the upload meanwhile, prevents."""
    try:
        yield
    except FileNotFoundError:
        raise upload_gone() from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise no_room() from None
