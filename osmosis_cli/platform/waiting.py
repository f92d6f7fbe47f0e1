"""Time passing while a user is in the browser: with a spinner where that is seen."""

from __future__ import annotations

import time
from itertools import cycle
from types import TracebackType

from .live_line import LiveLine

_FRAME_S = 0.12


class Spinner:
    """A clock whose sleep draws on standard error, if that is a terminal; a context manager.

    It leaves no line behind, also not after Ctrl-C.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._frames = cycle("|/-\\")
        self._line = LiveLine()

    def __enter__(self) -> Spinner:
        self._line.show(self._text, self._text)  # all that is seen where there is no terminal
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.clear()

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            self._line.show(f"{next(self._frames)} {self._text}", self._text)
            time.sleep(min(left, _FRAME_S))
