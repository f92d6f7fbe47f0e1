"""Many deadlines in one event loop, nearly all of which are taken back.

A timer of the loop costs more to set and to cancel than the rest of a quick call; alarms that are
set in the order in which they are due share one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """One callback that is due, until it has been called or cancelled."""

    __slots__ = ("_ring", "_waiting", "due")

    def __init__(self, due: float, ring: Callable[[], None], waiting: dict[Alarm, None]) -> None:
        self.due = due
        self._ring = ring
        self._waiting = waiting

    def cancel(self) -> None:
        """Call nothing. Idempotent, and harmless once it has rung."""
        self._waiting.pop(self, None)

    def ring(self) -> None:
        """Call it, once."""
        self.cancel()
        self._ring()


class Alarms:
    """Calls back at times of its loop's clock; from the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Alarm, None] = {}
        """In the order in which they are due."""
        self._latest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def at(self, due: float, ring: Callable[[], None]) -> Alarm | asyncio.TimerHandle:
        """Call `ring` at the loop's time `due`, unless what is returned is cancelled before."""
        if due < self._latest:
            return self._loop.call_at(due, ring)
        self._latest = due
        alarm = Alarm(due, ring, self._waiting)
        self._waiting[alarm] = None
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._look)
        return alarm

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        first = self._first()
        try:
            while first is not None and first.due <= now:
                first.ring()
                first = self._first()
        finally:  # also where somebody's callback has raised: the others are still due
            first = self._first()
            if first is not None and self._timer is None:
                self._timer = self._loop.call_at(first.due, self._look)

    def _first(self) -> Alarm | None:
        return next(iter(self._waiting), None)
