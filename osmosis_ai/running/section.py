"""One call of user code that is under way, and its time. Knows nothing of what is called.

Time in which the event loop was blocked does not count.

    Exception
      DeadlineExceeded    the time is up
      LeftBehind          code has ended after it was left behind
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from . import loop_thread

_excused_s: dict[int, float] = {}
"""For how long each event loop was blocked, in all, by its `id`; only differences count."""


class DeadlineExceeded(Exception):
    """The time is up; `str()` says after how many seconds, and why the code did not end before."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(f"timed out after {seconds:g} s" + (f": {why}" if why else ""))


class LeftBehind(Exception):
    """Code has ended after it was left behind: nothing waits for its task."""


def excuse(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Give every deadline of a loop more time, since the loop was blocked; from its thread."""
    _excused_s[id(loop)] = _excused_s.get(id(loop), 0.0) + seconds


class Deadline:
    """Calls `expire` once the time is up, unless it is cancelled before; from the loop's thread."""

    __slots__ = ("_excused_s", "_expire", "_loop", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, expire: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._expire = expire
        self._excused_s = _excused_s.get(id(loop), 0.0)
        self._timer = loop.call_later(seconds, self._ring)

    def cancel(self) -> None:
        """Cancel the timer. Idempotent."""
        self._timer.cancel()

    def _ring(self) -> None:
        before, self._excused_s = self._excused_s, _excused_s.get(id(self._loop), 0.0)
        if self._excused_s > before:
            self._timer = self._loop.call_later(self._excused_s - before, self._ring)
        else:
            self._expire()


def _nothing() -> None:
    pass


class Section:
    """A call of user code within the task that awaits it.

    When its time is up the task is cancelled. Code that ignores that is left behind later: then
    `left` does what the task would have done, and the task, when it ends, ends in LeftBehind.
    """

    __slots__ = (
        "_clean_up_s",
        "_deadline",
        "_left_s",
        "_second",
        "expired",
        "held",
        "is_left",
        "is_over",
        "job",
        "left",
        "name",
        "owner",
        "task",
        "until",
        "within_s",
    )

    def __init__(
        self,
        owner: object,
        name: str,
        within_s: float = math.inf,
        *,
        took_s: float = 0.0,
        job: Any = None,
        clean_up_s: float | None = None,
        expired: Callable[[], None] = _nothing,
        left: Callable[[], None] = _nothing,
    ) -> None:
        """`owner` is whose code it is, and `name` what messages call it; `job`: see `Watchdog`.

        `took_s` of `within_s` have passed already. `expired` is called when the time is up, before
        the task is cancelled.
        """
        self.owner = id(owner)
        self.name = name
        self.job = job
        self.expired = expired
        self.left = left
        self.until = math.inf
        """`time.monotonic()` by which the code must have returned to the event loop."""
        self.held = ""
        """Why the code was interrupted, once it was."""
        self.is_over = False
        """Whether the time was up before the code had ended."""
        self.is_left = False
        self.task: asyncio.Task[Any]
        self.within_s = within_s
        self._left_s = max(0.0, within_s - took_s)
        self._clean_up_s = loop_thread.CANCEL_TIMEOUT_S if clean_up_s is None else clean_up_s
        self._deadline: Deadline | None = None
        self._second: asyncio.TimerHandle | None = None
        """The second deadline, once the first has passed."""

    def begin(self, task: asyncio.Task[Any]) -> None:
        """Begin, in the task."""
        self.task = task
        if self._left_s < math.inf:
            self.until = time.monotonic() + self._left_s
            self._deadline = Deadline(task.get_loop(), self._left_s, self._expire)

    def end(self) -> None:
        """Cancel the timers: the code has ended."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None  # which refers to this: a cycle
        if self._second is not None:
            self._second.cancel()

    def cancel(self) -> None:
        """Cancel the code as when its time is up. Idempotent."""
        if not self.is_over:
            self.end()
            self._expire()

    def hold(self, why: str) -> None:
        """Note that the code did not return to the event loop in its time."""
        self.is_over = True
        self.held = self.held or why

    def late(self) -> DeadlineExceeded:
        """Return the error of code whose time was up."""
        return DeadlineExceeded(self.within_s, self.held)

    def _expire(self) -> None:
        self.is_over = True
        self.expired()
        self.task.cancel()
        self._second = self.task.get_loop().call_later(self._clean_up_s, self._leave)

    def _leave(self) -> None:
        self.is_left = True
        self.left()
