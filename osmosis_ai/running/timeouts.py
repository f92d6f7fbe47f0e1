"""Timeouts that hold for code that ends when it is cancelled, and for code that does not.

`asyncio.wait_for` never returns when a coroutine swallows its cancellation; these do. Time in which
the event loop was blocked by somebody else's code does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
CANCEL_TIMEOUT_S = 2.0
"""How long a cancelled coroutine may take to clean up; afterwards nothing waits for it."""

_excused_s: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""For how long each event loop was blocked, in all."""


class DeadlineExceeded(Exception):
    """The time is up; `abandoned` when the code ignored its cancellation."""

    def __init__(self, seconds: float, *, abandoned: bool = False) -> None:
        super().__init__(f"timed out after {seconds:g} s")
        self.seconds = seconds
        self.abandoned = abandoned


class LeftBehind(Exception):
    """A task's work has ended after `TaskDeadline` gave it up: nothing waits for the task."""


def is_current(task: asyncio.Task[Any] | None) -> bool:
    """Return whether a task runs: not where its coroutine is closed from outside of it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no event loop runs
        return False


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
        """Cancel the timeout. Idempotent."""
        self._timer.cancel()

    def _ring(self) -> None:
        before, self._excused_s = self._excused_s, _excused_s.get(self._loop, 0.0)
        if self._excused_s > before:
            self._timer = self._loop.call_later(self._excused_s - before, self._ring)
        else:
            self._expire()


async def within(
    seconds: float, work: Awaitable[T], *, cancel_timeout_s: float = CANCEL_TIMEOUT_S
) -> T:
    """Return the result of `work`, which is cancelled when the caller is.

    Raises:
        DeadlineExceeded: when the time was up, and `work` has ended or `cancel_timeout_s` is up.
    """
    loop = asyncio.get_running_loop()
    task: asyncio.Future[T] = asyncio.ensure_future(work, loop=loop)
    waiter: asyncio.Future[None] = loop.create_future()
    second: asyncio.TimerHandle | None = None

    def expire() -> None:
        nonlocal second
        if task.cancel():  # else it has ended in this very pass of the loop
            second = loop.call_later(cancel_timeout_s, wake, task)

    def wake(_: Any) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    deadline = Deadline(loop, seconds, expire)
    try:
        await waiter
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        deadline.cancel()
        if second is not None:
            second.cancel()
    if second is None:
        return task.result()
    if not task.done():
        task.add_done_callback(_retrieve_exception)
        raise DeadlineExceeded(seconds, abandoned=True)
    _retrieve_exception(task)
    raise DeadlineExceeded(seconds)


class TaskDeadline:
    """The deadline of what one task awaits: the task itself is cancelled when the time is up.

    Work that ignores its cancellation keeps the task: `leave` is called `CANCEL_TIMEOUT_S` later,
    to do what the task would have done. Work that ends after that ends in LeftBehind.
    """

    __slots__ = ("_expired", "_leave", "_left", "_second", "_seconds", "_task")

    def __init__(
        self,
        task: asyncio.Task[Any],
        seconds: float,
        *,
        leave: Callable[[], None],
        expired: Callable[[], None] = lambda: None,
    ) -> None:
        """`expired` is called when the time is up, before the task is cancelled."""
        self._task = task
        self._seconds = seconds
        self._leave = leave
        self._expired = expired
        self._second: asyncio.TimerHandle | None = None
        """The second deadline, once the first has passed."""
        self._left = False

    async def within(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, or raise DeadlineExceeded; to be awaited by the task."""
        deadline = Deadline(self._task.get_loop(), self._seconds, self._expire)
        try:
            result = await work
        except BaseException as error:
            if self._second is None or isinstance(error, GeneratorExit):
                raise
        finally:
            deadline.cancel()
        if self._second is None:
            return result
        self._second.cancel()
        if self._left:
            raise LeftBehind
        if hasattr(self._task, "uncancel"):  # since Python 3.11
            self._task.uncancel()
        raise DeadlineExceeded(self._seconds)

    def _expire(self) -> None:
        self._expired()
        self._task.cancel()
        self._second = self._task.get_loop().call_later(CANCEL_TIMEOUT_S, self._leave_task)

    def _leave_task(self) -> None:
        self._left = True
        self._leave()


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Read a late exception, so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
