"""One process at a time works on an evaluation: a lock that the kernel drops when its holder dies.

Knows files and processes; does not know what is protected.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

_held: set[int] = set()
"""Descriptors of the locks that this process holds."""


class InUse(Exception):
    """Another process holds the lock."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"in use by pid {pid}" if pid else "in use by another process")
        self.pid = pid


class NoLocks(Exception):
    """The file system has no locks; `str()` says why."""


class FileLock:
    """A lock on a file of its own, which stays and names the holder by its process id."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            InUse: when another process has it.
            NoLocks: when there can be none here.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._descriptor)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise
        _held.add(self._descriptor)

    def release(self) -> None:
        """Give it back. Idempotent."""
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:
        raise NoLocks("this system has no flock") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise InUse(_holder(descriptor)) from None
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise NoLocks(error.strerror) from None
        raise


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0)
    return int(text) if text.isdigit() else None


def holder_of(path: Path) -> int | None:
    """The process that holds the lock at `path`; None when none does. Takes nothing for long."""
    if not path.exists():
        return None
    try:
        FileLock(path).release()
    except InUse as held:
        return held.pid or -1
    except (NoLocks, OSError):
        return None
    return None


def _let_go() -> None:
    """A forked child must not keep its parent's locks alive."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
