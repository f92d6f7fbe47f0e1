"""End the session in order on the first SIGINT, SIGTERM or SIGHUP, in the reporting process.

The signal becomes one KeyboardInterrupt in the main thread, which pytest turns into the end of the
session with everything reported. A second SIGINT is noted, and goes to the handler that was there
before: an exception that a handler raises is lost in a finalizer, the note is not. While pytest
formats the first one's traceback it is noted alone. Workers leave SIGINT to the reporting process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from ..user_code.import_object import AGAIN_S, IMPORT_SYSTEM

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
        self.repeated = False
        """Whether a SIGINT has come after the first signal."""
        self.notes_only = False
        """Whether a second SIGINT is noted and raises nothing; a third one does."""
        self.is_reporting = False
        """Whether a first signal is noted and raises nothing: all runs have ended, and the reports
        are written in full.
        """

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
        if frame is not None and frame.f_code.co_filename == IMPORT_SYSTEM:
            main = threading.main_thread().ident
            again = threading.Timer(AGAIN_S, signal.pthread_kill, [main, number])
            again.daemon = True
            again.start()
            return
        if self.received is not None:
            self._handle_again(number, frame)
            return
        self.received = signal.Signals(number).name
        self._on_first(self.received)
        if self.is_reporting:
            return
        raise KeyboardInterrupt(f"by {self.received}")

    def _handle_again(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            is_second, self.repeated = not self.repeated, True
            if is_second and self.notes_only:
                return
            before = self._before[number]
            (before if callable(before) else signal.default_int_handler)(number, frame)


class CancelOnInterrupt:
    """A pytest plugin: an interrupt cancels rollouts before pytest formats its traceback.

    Another KeyboardInterrupt would end pytest there with a traceback: it is noted for what follows.
    """

    def __init__(self, signals: SignalHandlers, cancel: Callable[[], None]) -> None:
        self._signals = signals
        self._cancel = cancel

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Start nothing more, and cancel what is in flight."""
        self._signals.notes_only = True
        self._cancel()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let SIGINT wait until the end of the block, and for the processes started in it longer.

    A worker that it reaches before `leave_to_controller` would end with a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
        if noted:
            signal.raise_signal(signal.SIGINT)


def leave_to_controller() -> None:
    """Ignore SIGINT in a worker: it reaches the whole process group, and the controller acts.

    Set a handler that does nothing, rather than SIG_IGN, so that programs that an agent starts can
    be interrupted.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda number, frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
