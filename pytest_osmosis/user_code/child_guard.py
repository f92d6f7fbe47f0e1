"""Ends programs whose session was killed: SIGKILL leaves nobody else who could.

A small process that is told of every process group as it starts and ends. It outlives this process
by as long as it takes to kill the groups that are left. Knows nothing of agents.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading

_SCRIPT = """
import os, signal, sys

groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        continue
"""


class Guard:
    """The guard of one process, started with its first program."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._groups: set[int] = set()
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        """A group has started; from any thread."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """It has ended: its number may be another's from here on."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard end; harmless when repeated."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.communicate()

    def _tell(self, line: str) -> None:
        if self._process is None or self._owner != os.getpid():
            self._start()
            return
        try:
            self._write(line)
        except BrokenPipeError:  # somebody has killed it
            self._process.wait()
            self._start()

    def _start(self) -> None:
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SCRIPT],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._write("".join(f"+{group}\n" for group in self._groups))

    def _write(self, text: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(text.encode("ascii"))
        self._process.stdin.flush()


guard = Guard()
"""That of this process."""
atexit.register(guard.close)
