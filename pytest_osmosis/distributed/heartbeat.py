"""Workers that no longer live: frozen ones are ended, and orphans end themselves.

xdist has no heartbeat: a worker that is stopped, or that holds the interpreter for ever, would hang
the session. Each worker says that it lives, from a thread of its own; the controller ends the one
that has been silent for too long, and xdist replaces it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

BEAT_S = 1.0
"""How often a worker says that it lives."""


class Heartbeat:
    """A worker's thread that calls `beat` until it is stopped."""

    def __init__(self, beat: Callable[[], None], *, every_s: float = BEAT_S) -> None:
        self._beat = beat
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="osmosis-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Say nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        self._beat()
        while not self._stopped.wait(self._every_s):
            self._beat()


class Watch:
    """The controller's thread that ends workers which have fallen silent."""

    def __init__(self, *, silence_s: float, check_s: float = BEAT_S) -> None:
        self._silence_s = silence_s
        self._check_s = check_s
        self._heard: dict[int, float] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.ended: dict[int, float] = {}
        """Process ids that were ended, and how long each had been silent."""

    def heard(self, pid: int) -> None:
        """A worker lives; from any thread. The first one starts the watch."""
        if pid not in self.ended:
            self._heard[pid] = time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="osmosis-watch", daemon=True)
            self._thread.start()

    def gone(self, pid: int) -> None:
        """A worker has ended: its silence is no news."""
        self._heard.pop(pid, None)

    def stop(self) -> None:
        """End nobody any more."""
        self._stopped.set()

    def _run(self) -> None:
        checked = time.monotonic()
        while not self._stopped.wait(self._check_s):
            now = time.monotonic()
            slept_s, checked = now - checked - self._check_s, now
            if slept_s > self._check_s:  # this process was stopped too: nobody could be heard
                self._heard = {pid: when + slept_s for pid, when in self._heard.items()}
            for pid, when in list(self._heard.items()):
                if now - when > self._silence_s:
                    self._end(pid, now - when)

    def _end(self, pid: int, silent_s: float) -> None:
        self._heard.pop(pid, None)
        self.ended[pid] = silent_s
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it has ended by itself


def end_with_parent() -> None:
    """In a worker: end when the controller has ended, however that happened.

    On Linux the kernel sends the signal; elsewhere, and where a debugger or a sandbox forbids
    that, a thread looks for the parent.
    """
    parent = os.getppid()
    if sys.platform == "linux" and _ask_kernel() and os.getppid() == parent:
        return

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(BEAT_S)
        os._exit(1)

    threading.Thread(target=look, name="osmosis-parent", daemon=True).start()


def _ask_kernel() -> bool:
    """prctl(PR_SET_PDEATHSIG, SIGKILL): see prctl(2)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return libc.prctl(1, signal.SIGKILL, 0, 0, 0) == 0  # type: ignore[no-any-return]
    except (OSError, AttributeError):
        return False
