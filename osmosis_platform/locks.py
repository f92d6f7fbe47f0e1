"""A lock of a file that processes and threads hold together, or one of them alone.

The kernel drops it when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.1


@contextmanager
def locked(path: Path, *, alone: bool, check: Callable[[], None]) -> Iterator[None]:
    """Hold the lock, once it is free; `check` raises where that is not to be waited for."""
    while (number := _take(path, alone=alone)) is None:
        check()
        time.sleep(POLL_S)
    try:
        yield
    finally:
        os.close(number)


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock alone if it is free now; yield whether it is."""
    number = _take(path, alone=True)
    try:
        yield number is not None
    finally:
        if number is not None:
            os.close(number)


def _take(path: Path, *, alone: bool) -> int | None:
    """Return the descriptor that has the lock; None where another holds it."""
    number = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if os.fstat(number).st_ino == os.stat(path).st_ino:  # it was not removed meanwhile
            return number
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(number)
    return None
