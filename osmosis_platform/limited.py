"""Programs of the platform that read what others have written: children with limits of memory."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from osmosis_executors.job import MIB, Job, JobLimits, wait_for_end
from osmosis_executors.local import LocalExecutor

from .errors import busy
from .identifiers import new_id

LIMITS = JobLimits(file_bytes=1024 * MIB, memory_bytes=1024 * MIB)
"""Parquet and CSV are copied to a temporary file."""
_ENVIRONMENT = {
    "PATH": os.defpath,
    # Libraries take address space for each thread, most of which they never use.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


WAIT_S = 5.0
"""How long a request waits for those of its workspace before it: it keeps a thread."""


class Turns:
    """Lets one such program of each workspace run at a time."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def turn(self, workspace_id: str) -> Iterator[None]:
        """Have the workspace's turn; refuse a request that would wait for long."""
        lock = self._locks.setdefault(workspace_id, threading.Lock())
        if not lock.acquire(timeout=WAIT_S):
            raise busy()
        try:
            yield
        finally:
            lock.release()


def run_limited(
    *words: str | Path,
    folder: Path,
    time_s: float,
    limits: JobLimits = LIMITS,
    check: Callable[[], None] = lambda: None,
) -> tuple[int | None, str]:
    """Run Python with these arguments in a folder of ours; return its status, and what it prints.

    The status is None where it took too long.

    Raises:
        OSError: where it cannot be started.
        Exception: what `check` raises, which is called now and then.
    """
    command = [sys.executable, *map(str, words)]
    environment = {**_ENVIRONMENT, "TMPDIR": str(folder)}
    output = folder / f"printed-{new_id()}"
    job = Job(command, folder, environment, output, limits=limits)
    try:
        status = wait_for_end(LocalExecutor().start(job), check, time_s=time_s)
        return status, output.read_text("utf-8", "replace")
    finally:
        output.unlink(missing_ok=True)
