"""When the time of something is up; time in which its event loop was blocked does not count.

Exception
  DeadlineExceeded    the time is up
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

_excused_s: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""For how long each event loop was blocked, in all."""


class DeadlineExceeded(Exception):
    """The time is up; `str()` says after how many seconds, and why the code did not end before."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(f"timed out after {seconds:g} s" + (f": {why}" if why else ""))


def excuse(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Give every deadline of a loop more time, since the loop was blocked; from its thread."""
    _excused_s[loop] = _excused_s.get(loop, 0.0) + seconds


class Deadline:
    """Calls `expire` once the time is up, unless it is cancelled before; from the loop's thread."""

    __slots__ = ("_excused_s", "_expire", "_loop", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, expire: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._expire = expire
        self._excused_s = _excused_s.get(loop, 0.0)
        self._timer = loop.call_later(seconds, self._ring)

    def cancel(self) -> None:
        """Cancel the timer. Idempotent."""
        self._timer.cancel()

    def _ring(self) -> None:
        before, self._excused_s = self._excused_s, _excused_s.get(self._loop, 0.0)
        if self._excused_s > before:
            self._timer = self._loop.call_later(self._excused_s - before, self._ring)
        else:
            self._expire()
