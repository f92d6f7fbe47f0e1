"""SIGINT, SIGTERM and SIGHUP end a session alike: in order, once; a second SIGINT ends it at once.

In the process that reports, each becomes one KeyboardInterrupt in the main thread, which pytest
turns into the end of the session with everything reported. Workers leave SIGINT to that process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
INTERRUPTED = 2
"""pytest's exit status for an interrupted session."""


class SignalHandlers:
    """Handlers for the length of a session."""

    def __init__(self, on_first: Callable[[str], None] = lambda name: None) -> None:
        self._on_first = on_first
        self._before: dict[Any, Any] = {}
        self.received: str | None = None
        """The name of the first signal, once it has come."""

    def install(self) -> None:
        """Handle signals from here on; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before in (signal.SIG_IGN, None):
                continue  # nohup, or a handler that is not Python's: theirs to decide
            self._before[number] = before
            signal.signal(number, self._handle)

    def remove(self) -> None:
        """Put back what was there; harmless when repeated."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            if number == signal.SIGINT:
                os.write(2, b"\ninterrupted again: ended at once\n")
                os._exit(INTERRUPTED)
            return
        self.received = signal.Signals(number).name
        self._on_first(self.received)
        raise KeyboardInterrupt(f"by {self.received}")


def leave_to_controller() -> None:
    """In a worker: SIGINT comes to the whole process group, and the controller acts on it.

    A handler that does nothing, rather than SIG_IGN, so that programs an agent starts can be
    interrupted.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda number, frame: None)
