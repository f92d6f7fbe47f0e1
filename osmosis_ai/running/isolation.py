"""User code in the process's event loop, or in a separate thread and loop once it blocks the first.

What such code needs of the process it reaches through the process's own loop, the main loop, where
the window, the connections and the totals are. See `loop_watchdog` for how blocking code is found.
Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ..error_text import error_text
from .loop_watchdog import (
    BLOCKED_S,
    INTERRUPT_RETRY_S,
    LONG_BLOCK_S,
    Blocked,
    LoopWatchdog,
    Section,
    raise_in_thread,
    run_watched,
)
from .thread_frames import frame_of

T = TypeVar("T")

_OTHER_LOOP = ("different loop", "different event loop", "should be used inside a task")


class RunInMainLoop(Protocol):
    """Runs coroutines in the main loop, from any loop."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """Await the coroutine's result."""


def run_directly(coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """`RunInMainLoop` for code that is in the main loop already."""
    return coroutine


Call = Callable[[RunInMainLoop], Coroutine[Any, Any, T]]


class Isolation:
    """Runs user code in the main loop, or in threads once its owner has blocked the loop."""

    def __init__(
        self,
        on_blocked: Callable[[Blocked], None],
        *,
        blocked_s: float = BLOCKED_S,
        long_block_s: float = LONG_BLOCK_S,
        on_stuck: Callable[[Any, str], None] = lambda job, held: None,
    ) -> None:
        """Both callbacks are called in the watchdog's thread.

        `on_blocked(what)`: an owner is moved to threads. `on_stuck(job, why)`: the loop is lost.
        """
        self._on_blocked = on_blocked
        self._on_stuck = on_stuck
        self._blocked_s = blocked_s
        self._long_block_s = long_block_s
        self._isolated: set[int] = set()
        """Owners whose code runs in threads."""
        self._needs_main_loop: set[int] = set()
        """Owners whose code cannot be moved."""
        self._watchdog: LoopWatchdog | None = None

    async def run(
        self,
        owner: object,
        name: str,
        call: Call[T],
        *,
        within_s: float = math.inf,
        job: Any = None,
    ) -> T:
        """Await what `call` returns, from the main loop; `job` is what `on_stuck` gets.

        `owner` is whose code it is, and `name` what messages call it. Raises LoopHeld when the
        code blocked the loop beyond `within_s` seconds.

        A call that turns out to need the main loop, since it shares a lock or a client between
        runs, is made a second time, in that loop.
        """
        if id(owner) in self._isolated:
            try:
                return await run_in_own_loop(call)
            except Exception as error:
                if not _is_bound_to_other_loop(error):
                    raise
                self._needs_main_loop.add(id(owner))
                self._isolated.discard(id(owner))
        if self._watchdog is None:
            self._watchdog = LoopWatchdog(
                self._isolate_owner,
                self._on_stuck,
                blocked_s=self._blocked_s,
                long_block_s=self._long_block_s,
            )
        section = Section(id(owner), name, time.monotonic() + within_s, job)
        return await run_watched(section, call, run_directly)

    def interrupt_blocking(self) -> None:
        """Interrupt code that blocks the loop: the session ends; from any thread."""
        if self._watchdog is not None:
            self._watchdog.interrupt_blocking()

    def close(self) -> None:
        """Stop the watchdog."""
        if self._watchdog is not None:
            self._watchdog.stop()

    def _isolate_owner(self, owner: int, blocked: Blocked) -> None:
        if owner not in self._isolated and owner not in self._needs_main_loop:
            self._isolated.add(owner)
            self._on_blocked(blocked)


def _is_bound_to_other_loop(error: BaseException | None) -> bool:
    """Whether asyncio or aiohttp refused an object that belongs to another event loop."""
    for _ in range(10):
        if error is None:
            break
        if isinstance(error, RuntimeError) and any(
            part in error_text(error) for part in _OTHER_LOOP
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


async def run_in_own_loop(call: Call[T]) -> T:
    """Make a call in a separate thread and event loop; cancelled here, it is cancelled there."""
    work = _LoopThread(call, asyncio.get_running_loop())
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(work.run,), name="osmosis-isolated", daemon=True
    )
    thread.start()
    try:
        await asyncio.wait([work.ended])
    except asyncio.CancelledError:
        work.cancel()
        retry = work.main_loop.call_later(INTERRUPT_RETRY_S, work.interrupt, thread)
        await asyncio.wait([work.ended])  # its cleanup is part of it
        retry.cancel()
        if not work.ended.cancelled():
            work.ended.exception()  # read, so that asyncio does not report it
        raise
    result: T = work.ended.result()
    return result


class _LoopThread:
    """One call in a thread and a loop that end with it."""

    def __init__(self, call: Call[Any], main_loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[Any] = main_loop.create_future()
        self.main_loop = main_loop
        self._call = call
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def run(self) -> None:
        """The thread: make the call, hand its result over, then end what it left behind."""
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            settle: Callable[[Any], Any] = self.ended.set_result
            value: Any = loop.run_until_complete(self._main())
        except asyncio.CancelledError:
            settle, value = self.ended.cancel, "cancelled"
        except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
            settle, value = self.ended.set_exception, error
        self._deliver(settle, value)
        _shut_down(loop)

    def cancel(self) -> None:
        """Cancel the call, from the main loop; code that blocks notices it when it is done."""
        self._is_cancelled = True
        with contextlib.suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._cancel)

    def interrupt(self, thread: threading.Thread) -> None:
        """End code that ignored its cancellation; code that waits outside of Python goes on."""
        frame = frame_of(thread.ident or 0)
        while frame is not None and frame.f_code is not _LoopThread._main.__code__:
            frame = frame.f_back
        if frame is not None and thread.ident is not None:
            raise_in_thread(thread.ident)

    async def _main(self) -> Any:
        self._task = asyncio.current_task()
        if self._is_cancelled:
            raise asyncio.CancelledError
        return await self._call(self._run_in_main_loop)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run_in_main_loop(self, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.main_loop))

    def _deliver(self, settle: Callable[[Any], Any], value: Any) -> None:
        def settle_once() -> None:
            if not self.ended.done():
                settle(value)

        with contextlib.suppress(RuntimeError):  # the main loop is closed
            self.main_loop.call_soon_threadsafe(settle_once)


def _shut_down(loop: asyncio.AbstractEventLoop) -> None:
    """End a loop as `asyncio.run` does."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
