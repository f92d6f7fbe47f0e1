"""Group sync: lines are written at once, and become durable together, with few fsyncs.

A line that is written outlives its process, one that is synced the machine. A thread that must know
that its line is on disk syncs all lines that were written so far; lines that no thread waits for
are synced a moment later by a separate thread. After a write or an fsync has failed nothing is ever
written again: what the kernel then still has of the file is not known, and a line that is cut off
must stay the last one. Knows lines and files; does not know what is in them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

FLUSH_INTERVAL_S = 0.1
"""How long a line may stay unsynced when no thread waits for it."""


class AppendFile:
    """A file that is only appended to; its descriptor is not inherited by other programs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self.size = os.fstat(self._descriptor).st_size
        """No other process appends to it."""

    def write(self, data: bytes) -> None:
        """Append, in one call of `write` unless the disk takes only a part."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)

    def sync(self) -> None:
        """Return once what was written is on disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; harmless when repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class GroupSync:
    """The files that have lines which are not on disk yet; used from any thread."""

    def __init__(
        self,
        *,
        on_failure: Callable[[Path, OSError], None],
        flush_interval_s: float = FLUSH_INTERVAL_S,
    ) -> None:
        """`on_failure` is called once, in the thread in which a write or an fsync failed."""
        self._on_failure = on_failure
        self._flush_interval_s = flush_interval_s
        self._unsynced: dict[AppendFile, int] = {}
        """The last ticket of each file that has lines which are not on disk."""
        self._writing = threading.Lock()
        self._syncing = threading.Lock()
        self._last = self._durable = 0
        self._failed = False
        self._due = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, file: AppendFile, lines: bytes) -> tuple[int, int]:
        """Append lines; return the ticket to wait with, and where they begin."""
        failure = None
        with self._writing:
            self._last = ticket = self._last + 1
            offset = file.size
            if not self._failed:
                try:
                    file.write(lines)
                    self._unsynced[file] = ticket
                except OSError as error:
                    self._failed, failure = True, error
        if failure is not None:
            self._on_failure(file.path, failure)
        elif not self._due.is_set() and not self._failed:
            self._due.set()
            self._start()
        return ticket, offset

    def wait(self, ticket: int) -> None:
        """Return once the ticket's lines are on disk, or will never be."""
        if ticket > self._durable and not self._failed:
            self._sync(ticket)

    def flush(self) -> None:
        """Return once every line written so far is on disk, or will never be."""
        self.wait(self._last)

    def fail(self, path: Path, error: OSError) -> None:
        """Write nothing again, since a file could not be opened."""
        with self._writing:
            is_first, self._failed = not self._failed, True
        if is_first:
            self._on_failure(path, error)

    def close(self) -> None:
        """Sync what was written and end the thread; harmless when repeated."""
        self.flush()
        self._closed.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        with self._writing:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._sync_later, name="osmosis-sync", daemon=True
                )
                self._thread.start()

    def _sync_later(self) -> None:
        while True:
            self._due.wait()
            if self._closed.wait(self._flush_interval_s):
                return
            self._sync(self._last)

    def _sync(self, ticket: int) -> None:
        with self._syncing:
            if ticket <= self._durable or self._failed:
                return
            with self._writing:
                files, last = list(self._unsynced), self._last
                self._due.clear()
            failure = _synced(files)
            if failure is None:
                with self._writing:  # only now: an interrupt until here leaves them unsynced
                    left = {file: at for file, at in self._unsynced.items() if at > last}
                    self._unsynced, self._durable = left, last
                return
        self.fail(*failure)


def _synced(files: list[AppendFile]) -> tuple[Path, OSError] | None:
    """Sync files; return what failed, if anything."""
    for file in files:
        try:
            file.sync()
        except OSError as error:
            return file.path, error
    return None


def sync_file(path: Path) -> None:
    """Return once what another process has written to a file is on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
