"""End the session in order on the first SIGINT, SIGTERM or SIGHUP, in the reporting process.

The signal becomes one KeyboardInterrupt in the main thread, which pytest turns into the end of the
session with everything reported. A second SIGINT goes to the handler that was there before.
Workers leave SIGINT to the reporting process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class SignalHandlers:
    """Signal handlers for the length of a session."""

    def __init__(self, on_first: Callable[[str], None] = lambda name: None) -> None:
        """`on_first` is called with the name of the first signal, in the handler."""
        self._on_first = on_first
        self._before: dict[Any, Any] = {}
        self.received: str | None = None
        """The name of the first signal, once it has come."""

    def install(self) -> None:
        """Set the handlers; do nothing outside the main thread, which alone can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before in (signal.SIG_IGN, None):
                continue  # nohup, or a handler that was not set from Python
            self._before[number] = before
            signal.signal(number, self._handle)

    def remove(self) -> None:
        """Restore the previous handlers; harmless when repeated."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            return
        self.received = signal.Signals(number).name
        if signal.SIGINT in self._before:
            signal.signal(signal.SIGINT, self._before.pop(signal.SIGINT))
        self._on_first(self.received)
        raise KeyboardInterrupt(f"by {self.received}")


def leave_to_controller() -> None:
    """Ignore SIGINT in a worker: it reaches the whole process group, and the controller acts.

    Set a handler that does nothing, rather than SIG_IGN, so that programs that an agent starts can
    be interrupted.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda number, frame: None)
