"""A thread with an event loop, which no code that runs in it can end.

Knows nothing of what runs there.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, TimeoutError
from types import FrameType
from typing import Any

CANCEL_TIMEOUT_S = 2.0
"""How long cancelled code may take to clean up; afterwards nothing waits for it."""

_one_at_a_time = threading.Lock()


class LoopInterrupted(BaseException):
    """Raised in code that does not return to the event loop."""


class LoopThread:
    """A daemon thread that turns an event loop until it is closed."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._is_closing = False
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call it in the thread, unless the loop is closed; from any thread."""
        with contextlib.suppress(RuntimeError):  # closed between any check and the call
            self.loop.call_soon_threadsafe(callback, *arguments)

    def where(self) -> str:
        """Return what the thread is at: the innermost frames."""
        frame = frame_of(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame, limit=3)).strip() if frame else "its end"

    def interrupt(self, task: asyncio.Task[Any] | None) -> None:
        """End a task that holds the loop; one that waits outside of Python continues."""
        if task is not None and asyncio.current_task(self.loop) is task:
            raise_in_thread(self._thread.ident or 0)

    def end(self, close: Callable[[], Awaitable[None]] | None = None) -> Future[None]:
        """Cancel what runs in the loop, await `close`, and end the thread; from any thread."""
        return asyncio.run_coroutine_threadsafe(self._shut(close), self.loop)

    def close(self, timeout_s: float, close: Callable[[], Awaitable[None]] | None = None) -> bool:
        """Do the same and wait for it; return False when the loop is blocked. Idempotent."""
        if self.loop.is_closed():
            return True
        try:
            self.end(close).result(timeout_s)
        except TimeoutError:
            return False
        self._thread.join()
        return True

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._is_closing:  # whatever code in it does to the loop
            with contextlib.suppress(SystemExit, KeyboardInterrupt, LoopInterrupted):
                self.loop.run_forever()  # asyncio ends the loop for a task that raises one of these
        self.loop.close()

    async def _shut(self, close: Callable[[], Awaitable[None]] | None) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
        if close is not None:
            await close()
        for left in asyncio.all_tasks():  # asyncio would report each, with lines of ours
            left._log_destroy_pending = False  # type: ignore[attr-defined]
        await self.loop.shutdown_asyncgens()
        await self.loop.shutdown_default_executor()
        self.loop.call_soon(self._stop)  # once this has its result

    def _stop(self) -> None:
        self._is_closing = True
        self.loop.stop()


def raise_in_thread(thread: int) -> None:
    """Raise LoopInterrupted in a thread, as soon as it executes Python code again.

    Neither a thread nor its event loop can be ended from outside, and a `while True` never yields:
    this is the one way to hold it to its deadline without the loss of the process and of all other
    rollouts in it. Only code whose time is up, or whose session has ended, is interrupted.
    """
    import ctypes  # for this alone

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(LoopInterrupted)
    )


def frame_of(thread: int) -> FrameType | None:
    """Return the frame of the thread with this ident; None where there is no such thread.

    `sys._current_frames` holds the interpreter's lock over threads while it makes objects. Before
    Python 3.13 a garbage collection in there can run Python code and change threads, and a thread
    that is just being started then never gets that lock
    (https://github.com/python/cpython/issues/106883). So nothing is collected meanwhile.
    """
    with _one_at_a_time:
        is_enabled = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)
        finally:
            if is_enabled:
                gc.enable()
