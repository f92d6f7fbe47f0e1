"""A deadline that holds: for code that ends when it is cancelled, and for code that does not.

`asyncio.wait_for` waits for ever for a coroutine that swallows its cancellation; this does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
GRACE_S = 2.0
"""How long a cancelled coroutine may take to clean up before it is left behind."""
_excused: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


def excuse(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """For so long nothing could go on in the loop: what waits there gets that much more time."""
    _excused[loop] = _excused.get(loop, 0.0) + seconds


class DeadlineExceeded(Exception):
    """The time was up; `abandoned` when the code went on all the same."""

    def __init__(self, seconds: float, *, abandoned: bool = False) -> None:
        super().__init__(f"timed out after {seconds:g} s")
        self.seconds = seconds
        self.abandoned = abandoned


async def within(seconds: float, work: Awaitable[T], *, grace_s: float = GRACE_S) -> T:
    """The result of `work`, or DeadlineExceeded; `work` is cancelled when the caller is."""
    loop = asyncio.get_running_loop()
    task: asyncio.Future[T] = asyncio.ensure_future(work, loop=loop)
    waiter: asyncio.Future[None] = loop.create_future()
    timer: list[asyncio.TimerHandle] = []
    late = False
    excused = _excused.get(loop, 0.0)

    def expire() -> None:
        nonlocal late, excused
        more_s, excused = _excused.get(loop, 0.0) - excused, _excused.get(loop, 0.0)
        if more_s > 0:
            timer.append(loop.call_later(more_s, expire))
            return
        late = True
        task.cancel()
        timer.append(loop.call_later(grace_s, wake, task))

    def wake(_: Any) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    timer.append(loop.call_later(seconds, expire))
    try:
        await waiter
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        for handle in timer:
            handle.cancel()
    if late:
        if not task.done():
            task.add_done_callback(_heed)
            raise DeadlineExceeded(seconds, abandoned=True)
        _heed(task)
        raise DeadlineExceeded(seconds)
    return task.result()


def _heed(task: asyncio.Future[Any]) -> None:
    """Take note of a late exception, so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
