"""Workers that hang: the controller ends frozen ones, and orphans end themselves.

xdist has no heartbeat: a worker that is stopped, or that never releases the interpreter, would hang
the session. A thread of each worker sends a sign of life; the controller ends a worker that has
been silent for too long, and xdist replaces it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

BEAT_S = 1.0
"""Seconds between two signs of life."""


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

    def note_beat(self, pid: int) -> None:
        """Note a sign of life, from any thread; the first one starts the watch."""
        if pid not in self.ended:
            self._heard[pid] = time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="osmosis-watch", daemon=True)
            self._thread.start()

    def gone(self, pid: int) -> None:
        """Watch a worker that has ended no longer."""
        self._heard.pop(pid, None)

    def stop(self) -> None:
        """Stop the watchdog."""
        self._stopped.set()

    def _run(self) -> None:
        checked = time.monotonic()
        while not self._stopped.wait(self._check_s):
            now = time.monotonic()
            slept_s, checked = now - checked - self._check_s, now
            if slept_s > self._check_s:  # this process was stopped too and could hear no worker
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
            return  # it has already ended


def live_with_parent(beat: Callable[[], None]) -> None:
    """In a worker: call `beat` every second, and end when the controller has, however it did."""
    parent = os.getppid()

    def run() -> None:
        while os.getppid() == parent:
            beat()
            time.sleep(BEAT_S)
        os._exit(1)  # a thread has no gentler way to end a process whose main thread may hang

    threading.Thread(target=run, name="osmosis-heartbeat", daemon=True).start()
