"""Group commit: lines appended by many threads become durable together, with few fsyncs.

A thread that must know that its line is on disk commits all lines that wait; lines that no thread
waits for are committed a moment later by a separate thread. Of a run store, `report`
waits for the disk, `keep` does not. After a write or an fsync has failed nothing is ever written
again: what the kernel then still has of the file is not known.
Knows lines and files; does not know what is in them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

FLUSH_INTERVAL_S = 0.1
"""How long a line may stay queued when no thread waits for it."""


class AppendFile:
    """A file that is only appended to; its descriptor is not inherited by other programs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)

    def write(self, data: bytes) -> None:
        """Append, in one call of `write` unless the disk takes only a part."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def sync(self) -> None:
        """Return once what was written is on disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; harmless when repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class GroupCommit:
    """The lines that are not on disk yet; used from any thread."""

    def __init__(
        self,
        *,
        on_failure: Callable[[Path, OSError], None],
        flush_interval_s: float = FLUSH_INTERVAL_S,
    ) -> None:
        """`on_failure` is called once, in the thread in which a write failed."""
        self._on_failure = on_failure
        self._flush_interval_s = flush_interval_s
        self._queue: list[tuple[AppendFile, bytes]] = []
        self._queueing = threading.Lock()
        self._committing = threading.Lock()
        self._last = self._durable = 0
        self._failed = False
        self._due = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, file: AppendFile, line: bytes) -> int:
        """Queue a line; return the ticket to wait with."""
        with self._queueing:
            if not self._failed:
                self._queue.append((file, line))
            self._last += 1
            ticket = self._last
        if not self._due.is_set():
            self._due.set()
            self._start()
        return ticket

    def wait(self, ticket: int) -> None:
        """Return once the ticket's line is on disk, or will never be."""
        if ticket > self._durable and not self._failed:
            self._commit(ticket)

    def flush(self) -> None:
        """Return once every line appended so far is on disk, or will never be."""
        self.wait(self._last)

    def close(self) -> None:
        """Commit what waits and end the thread; harmless when repeated."""
        self.flush()
        self._closed.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        with self._queueing:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._flush_waiting, name="osmosis-commit", daemon=True
                )
                self._thread.start()

    def _flush_waiting(self) -> None:
        while True:
            self._due.wait()
            if self._closed.wait(self._flush_interval_s):
                return
            self._commit(self._last)

    def _commit(self, ticket: int) -> None:
        with self._committing:
            if ticket <= self._durable or self._failed:
                return
            with self._queueing:
                batch, last = self._queue[:], self._last
                self._due.clear()
            failure = _written(batch)
            with self._queueing:  # only now: an interrupt until here leaves the lines queued
                del self._queue[: len(batch)]
                self._failed = failure is not None
                if failure is None:
                    self._durable = last
                    return
                self._queue.clear()
        self._on_failure(*failure)


def _written(batch: list[tuple[AppendFile, bytes]]) -> tuple[Path, OSError] | None:
    """Write a group, one write and one fsync a file; return what failed, if anything."""
    by_file: dict[AppendFile, list[bytes]] = {}
    for file, line in batch:
        by_file.setdefault(file, []).append(line)
    for file, lines in by_file.items():
        try:
            file.write(b"".join(lines))
            file.sync()
        except OSError as error:
            return file.path, error
    return None
