"""A call of user code in the event loop of another thread.

What the code needs of the process it reaches through the loop that it was called from, the main
loop, where connections and totals are. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from .loop_thread import LoopThread
from .main_loop import INTERRUPT_RETRY_S, Call

R = TypeVar("R")
T = TypeVar("T")


class LoopCall(Generic[T]):
    """One call; made in the main loop, which is the running one."""

    def __init__(self, call: Call[T]) -> None:
        self._call = call
        self._main_loop = asyncio.get_running_loop()
        self._claim = threading.Lock()
        self._thread: LoopThread
        self._task: asyncio.Task[None] | None = None
        self._work: Awaitable[T] | None = None
        self.ended: asyncio.Future[T] = self._main_loop.create_future()

    @property
    def has_begun(self) -> bool:
        """Whether a thread has come to it."""
        return self._claim.locked()

    def start(self, thread: LoopThread) -> None:
        """Begin when the thread's loop comes to it, unless another's has come to it before."""
        thread.soon(lambda: thread.loop.create_task(self._run(thread)))

    def start_apart(self) -> None:
        """Begin in a separate thread and event loop, which end with the call."""
        thread = LoopThread("osmosis-isolated")
        self.ended.add_done_callback(lambda _: thread.end())
        self.start(thread)

    def where(self) -> str:
        """Return what the call is at: the innermost places."""
        if self._task is None:
            return "its start"
        if asyncio.current_task(self._thread.loop) is self._task:
            return self._thread.where()
        places: list[str] = []
        inner: Any = self._task.get_coro()
        while frame := getattr(inner, "cr_frame", None):
            places.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
            inner = inner.cr_await
        return " > ".join(places[-3:]) or "its end"

    def leave(self) -> None:
        """Resume the code no more, although it ignored its cancellation."""
        if self._task is not None:
            self._thread.soon(self._close, self._task)

    async def result(self) -> T:
        """Return what the call returns; cancelled here, it is cancelled there."""
        try:
            await asyncio.wait([self.ended])
        except asyncio.CancelledError:
            if self._claim.acquire(blocking=False):
                raise  # it had not begun, and will not
            self._thread.soon(self._cancel)
            interruption = self._main_loop.call_later(INTERRUPT_RETRY_S, self._interrupt)
            await asyncio.wait([self.ended])  # its cleanup is part of it
            interruption.cancel()
            if not self.ended.cancelled():
                self.ended.exception()  # read, so that asyncio does not report it
            raise
        return self.ended.result()

    # ---- in the other thread

    async def _run(self, thread: LoopThread) -> None:
        if not self._claim.acquire(blocking=False):
            return
        self._thread, self._task = thread, asyncio.current_task()
        settle: Callable[[Any], Any] = self.ended.set_exception
        value: Any
        try:
            self._work = work = self._call(self._run_in_main_loop)
            value = await work
            settle = self.ended.set_result
        except asyncio.CancelledError:
            settle, value = self.ended.cancel, "cancelled"
        except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
            value = error
        with contextlib.suppress(RuntimeError):  # the main loop is closed
            self._main_loop.call_soon_threadsafe(self._settle, settle, value)

    def _run_in_main_loop(self, coroutine: Coroutine[Any, Any, R]) -> Awaitable[R]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._main_loop))

    def _cancel(self) -> None:
        assert self._task is not None
        self._task.cancel()

    def _close(self, task: asyncio.Task[None]) -> None:
        if isinstance(self._work, Coroutine):
            with contextlib.suppress(RuntimeError):  # it ignores that as well
                self._work.close()
        task.cancel()

    # ---- in the main loop

    def _interrupt(self) -> None:
        self._thread.interrupt(self._task)

    def _settle(self, settle: Callable[[Any], Any], value: Any) -> None:
        if not self.ended.done():
            settle(value)
