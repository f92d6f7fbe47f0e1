"""Runs one program: text in, text out, and an end for all that it has started.

It gets a session of its own, so that a signal to its process group reaches its children too. A
child that leaves the group is out of reach, and is not waited for.
Knows nothing of agents.
"""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

MAX_STDOUT = 16 * 1024 * 1024
_PIECE = 64 * 1024
_LOOK_S = 0.2
"""How often to look whether the program has ended while its children keep its pipes open."""
_LAST_PIECES = 32
"""What an ended program has left in its pipes is read at so many turns: no pipe holds more."""


class TooMuchOutput(Exception):
    """The program printed more than `MAX_STDOUT` and was killed."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended."""

    status: int
    """Its exit status; of a signal, the signal's negative number."""
    stdout: str


@dataclass(eq=False)
class Program:
    """A program to be run once: `run()` in a thread of its own, `kill()` from any other."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes
    on_stderr: Callable[[str], None]
    _process: subprocess.Popen[bytes] | None = None
    _killed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> ProcessResult:
        """Run it to its end, and end what it left behind. OSError: it cannot be started."""
        with self._lock:
            if self._killed:
                return ProcessResult(-signal.SIGKILL, "")
            process = self._process = subprocess.Popen(
                self.argv,
                cwd=self.cwd,
                env=dict(self.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        with process:
            try:
                stdout = _Exchange(process, self.stdin, self.on_stderr).finish(on_end=self.kill)
                _has_ended(process.pid, wait=True)
            finally:
                self.kill()
                with self._lock:  # before it is reaped: its number may be another's then
                    self._process = None
            return ProcessResult(process.wait(), stdout.decode("utf-8", "replace"))

    def kill(self) -> None:
        """End the program and its children at once; harmless when they have ended."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                _kill_group(self._process.pid)


def _has_ended(pid: int, *, wait: bool = False) -> bool:
    """Whether a child has ended, its number still its own."""
    look = os.WEXITED | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, pid, look if wait else look | os.WNOHANG) is not None
    except ChildProcessError:  # user code in this process has waited for any child
        return True


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it has ended, or (macOS) only zombies are left of it


class _Exchange:
    """Feeds and reads a program until it has its input and has closed its outputs."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, on_stderr: Callable[[str], None]
    ) -> None:
        self._process = process
        self._left = memoryview(stdin)
        self._on_stderr = on_stderr
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stdout = bytearray()
        self._selector = selectors.DefaultSelector()
        self._register(process.stdin, selectors.EVENT_WRITE, self._feed)
        self._register(process.stdout, selectors.EVENT_READ, self._read_stdout)
        self._register(process.stderr, selectors.EVENT_READ, self._read_stderr)
        self._open_outputs = 2

    def finish(self, on_end: Callable[[], None]) -> bytes:
        """What it printed; `on_end` is called when it has ended before its outputs were closed."""
        with self._selector:
            while (self._open_outputs or self._left) and not _has_ended(self._process.pid):
                self._turn(_LOOK_S)
            if self._open_outputs:
                on_end()
            for _ in range(_LAST_PIECES):
                if not self._open_outputs or not self._turn(0):
                    break
        return bytes(self._stdout)

    def _turn(self, wait_s: float) -> bool:
        """Feed and read what can be at once; False when there was nothing."""
        ready = self._selector.select(wait_s)
        for key, _ in ready:
            key.data(key.fileobj)
        return bool(ready)

    def _register(
        self, pipe: IO[bytes] | None, event: int, handle: Callable[[IO[bytes]], None]
    ) -> None:
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, event, handle)

    def _feed(self, pipe: IO[bytes]) -> None:
        try:
            self._left = self._left[os.write(pipe.fileno(), self._left[:_PIECE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to read the rest
            self._left = self._left[:0]
        if not self._left:
            self._selector.unregister(pipe)
            pipe.close()

    def _read_stdout(self, pipe: IO[bytes]) -> None:
        self._stdout += self._read(pipe)
        if len(self._stdout) > MAX_STDOUT:
            raise TooMuchOutput(f"printed more than {MAX_STDOUT >> 20} MiB")

    def _read_stderr(self, pipe: IO[bytes]) -> None:
        self._on_stderr(self._decoder.decode(self._read(pipe)))

    def _read(self, pipe: IO[bytes]) -> bytes:
        piece = os.read(pipe.fileno(), _PIECE)
        if not piece:
            self._selector.unregister(pipe)
            self._open_outputs -= 1
        return piece
