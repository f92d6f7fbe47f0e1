"""A deadline that holds: for code that ends when it is cancelled, and for code that does not.

`asyncio.wait_for` waits for ever for a coroutine that swallows its cancellation; these do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from osmosis_ai.alarms import Alarm, Alarms

T = TypeVar("T")
GRACE_S = 2.0
"""How long a cancelled coroutine may take to clean up before it is left behind."""


class DeadlineExceeded(Exception):
    """The time was up; `abandoned` when the code went on all the same."""

    def __init__(self, seconds: float, *, abandoned: bool = False) -> None:
        super().__init__(f"timed out after {seconds:g} s")
        self.seconds = seconds
        self.abandoned = abandoned


class LeftBehind(Exception):
    """The task's work has ended after it was given up: nobody waits for the task any more."""


class Deadlines:
    """Those of one event loop; from its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._alarms = Alarms(loop)
        self._excused_s = 0.0

    def excuse(self, seconds: float) -> None:
        """So long nothing could go on in the loop: what waits there gets that much more time."""
        self._excused_s += seconds

    def start(self, seconds: float, expire: Callable[[], None]) -> Deadline:
        """Call `expire` once the time is up, unless it is cancelled before."""
        return Deadline(self, seconds, expire)

    def _at(self, seconds: float, ring: Callable[[], None]) -> Alarm | asyncio.TimerHandle:
        return self._alarms.at(self.loop.time() + seconds, ring)


class Deadline:
    """One of them."""

    __slots__ = ("_alarm", "_among", "_excused_s", "_expire")

    def __init__(self, among: Deadlines, seconds: float, expire: Callable[[], None]) -> None:
        self._among = among
        self._expire = expire
        self._excused_s = among._excused_s
        self._alarm = among._at(seconds, self._ring)

    def cancel(self) -> None:
        """The time does not matter any more. Idempotent."""
        self._alarm.cancel()

    def _ring(self) -> None:
        more_s = self._among._excused_s - self._excused_s
        self._excused_s = self._among._excused_s
        if more_s > 0:
            self._alarm = self._among._at(more_s, self._ring)
        else:
            self._expire()


_of_loops: WeakValueDictionary[int, Deadlines] = WeakValueDictionary()
"""By the loop's identity, which is nobody else's as long as its deadlines hold it."""


def deadlines_of(loop: asyncio.AbstractEventLoop) -> Deadlines:
    """The deadlines of a loop; the same as long as anybody has them."""
    found = _of_loops.get(id(loop))
    if found is None:
        found = _of_loops[id(loop)] = Deadlines(loop)
    return found


async def within(seconds: float, work: Awaitable[T], *, grace_s: float = GRACE_S) -> T:
    """The result of `work`, or DeadlineExceeded; `work` is cancelled when the caller is."""
    loop = asyncio.get_running_loop()
    task: asyncio.Future[T] = asyncio.ensure_future(work, loop=loop)
    waiter: asyncio.Future[None] = loop.create_future()
    grace: asyncio.TimerHandle | None = None

    def expire() -> None:
        nonlocal grace
        task.cancel()
        grace = loop.call_later(grace_s, wake, task)

    def wake(_: Any) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    deadline = deadlines_of(loop).start(seconds, expire)
    try:
        await waiter
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        deadline.cancel()
        if grace is not None:
            grace.cancel()
    if grace is None:
        return task.result()
    if not task.done():
        task.add_done_callback(_heed)
        raise DeadlineExceeded(seconds, abandoned=True)
    _heed(task)
    raise DeadlineExceeded(seconds)


class TaskDeadline:
    """The deadline of what one task awaits: the task itself is cancelled when the time is up.

    Work that does not heed that keeps the task: `leave` is called, and is to do what the task would
    have done. Should the work ever end, it ends in LeftBehind.
    """

    __slots__ = ("_among", "_grace", "_leave", "_left", "_seconds", "_task")

    def __init__(
        self,
        among: Deadlines,
        task: asyncio.Task[Any],
        seconds: float,
        *,
        leave: Callable[[], None],
    ) -> None:
        self._among = among
        self._task = task
        self._seconds = seconds
        self._leave = leave
        self._grace: asyncio.TimerHandle | None = None
        """Set once the time is up."""
        self._left = False

    async def within(self, work: Awaitable[T]) -> T:
        """The result of `work`, or DeadlineExceeded; to be awaited by the task."""
        deadline = self._among.start(self._seconds, self._expire)
        try:
            result = await work
        except BaseException as error:
            if self._grace is None or isinstance(error, GeneratorExit):
                raise
        finally:
            deadline.cancel()
        if self._grace is None:
            return result
        self._grace.cancel()
        if self._left:
            raise LeftBehind
        if hasattr(self._task, "uncancel"):  # from Python 3.11 on
            self._task.uncancel()
        raise DeadlineExceeded(self._seconds)

    def _expire(self) -> None:
        self._task.cancel()
        self._grace = self._among.loop.call_later(GRACE_S, self._go)

    def _go(self) -> None:
        self._left = True
        self._leave()


def _heed(task: asyncio.Future[Any]) -> None:
    """Take note of a late exception, so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
