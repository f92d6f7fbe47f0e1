"""Synchronous calls of the user's, off the event loop, each in a thread that nobody must wait for.

Threads are daemons and are kept for the next call; one that never comes back costs itself alone,
neither a later call nor the end of the process. Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class CallThreads:
    """As many threads as calls are under way at once."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._spare = 0
        """Threads that are free, less the calls that wait for one."""
        self._threads = 0

    def run(self, call: Callable[[], T]) -> Awaitable[T]:
        """Start `call` now, in the caller's context; the result, or what it raised, is awaited."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        with self._lock:
            self._spare -= 1
            start = self._spare < 0
            if start:
                self._spare += 1
                self._threads += 1
        self._work.put((lambda: context.run(call), future, loop))
        if start:
            threading.Thread(target=self._serve, name="osmosis-call", daemon=True).start()
        return future

    def close(self) -> None:
        """Let the free threads end."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            call, future, loop = work
            try:
                outcome = (future.set_result, call())
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits the call
                outcome = (future.set_exception, error)
            with self._lock:
                self._spare += 1
            _deliver(loop, future, *outcome)
            del call, future, loop, work, outcome


def _deliver(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    settle: Callable[[Any], None],
    value: Any,
) -> None:
    def settle_once() -> None:
        if not future.done():  # its waiter may have given up
            settle(value)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle_once)
