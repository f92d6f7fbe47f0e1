"""Synchronous calls off the event loop, in daemon threads: a stuck call never blocks shutdown.

`concurrent.futures` joins its threads when the interpreter exits, whatever they do; so do asyncio's
default executor and `asyncio.to_thread`. A call that never returns costs its own thread, and delays
neither a later call nor the end of the process. Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import os
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from .forked import end_forked
from .section import Deadline, DeadlineExceeded

T = TypeVar("T")


class CallThreads:
    """Makes calls for one event loop: in an idle thread, or else in a new one."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        """Threads that wait for a call, less the calls that wait for them."""
        self._threads = 0
        self._results: list[Callable[[], None]] = []
        """Those that the loop has not taken yet."""

    def run(self, call: Callable[[], T], within_s: float = math.inf) -> Awaitable[T]:
        """Make `call` in the caller's context and return its result, or raise what it raised.

        Raises:
            DeadlineExceeded: after `within_s` seconds; the call itself continues.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        deadline = None
        if within_s < math.inf:
            deadline = Deadline(loop, within_s, partial(_expire, future, within_s))
        made = partial(self._make, contextvars.copy_context(), call, future, deadline)
        with self._lock:
            is_new = not self._idle
            self._idle -= not is_new
            self._threads += is_new
        self._calls.put(made)
        if is_new:
            threading.Thread(target=self._serve, name="osmosis-call", daemon=True).start()
        return future

    def close(self) -> None:
        """Let the threads end, each after its call."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _serve(self) -> None:
        while (make := self._calls.get()) is not None:
            make()
            del make  # nothing of the call is kept while the thread is idle

    def _make(
        self,
        context: contextvars.Context,
        call: Callable[[], Any],
        future: asyncio.Future[Any],
        deadline: Deadline | None,
    ) -> None:
        settle: Callable[[Any], None] = future.set_exception
        value: Any
        process = os.getpid()
        try:
            value = context.run(call)
            settle = future.set_result
        except (StopIteration, GeneratorExit) as error:  # no future can carry them to a coroutine
            value = RuntimeError(f"the call raised {type(error).__name__}")
            value.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
            value = error
        if os.getpid() != process:
            end_forked()
        with self._lock:
            self._idle += 1  # before the result is known, so that the next call takes this thread
            is_first = not self._results
            self._results.append(partial(_settle, future, deadline, settle, value))
        if is_first:  # else the loop has been woken, and is about to take them all
            with contextlib.suppress(RuntimeError):  # the loop is closed
                future.get_loop().call_soon_threadsafe(self._take)

    def _take(self) -> None:
        with self._lock:
            results, self._results = self._results, []
        for settle in results:
            settle()


async def run_in_thread(call: Callable[[], T]) -> T:
    """Make one call in a thread of its own, and return its result."""
    threads = CallThreads()
    try:
        return await threads.run(call)
    finally:
        threads.close()


def _settle(
    future: asyncio.Future[Any],
    deadline: Deadline | None,
    settle: Callable[[Any], None],
    value: Any,
) -> None:
    if deadline is not None:
        deadline.cancel()
    if not future.done():  # its waiter may have given up, or its time may be up
        settle(value)


def _expire(future: asyncio.Future[Any], seconds: float) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded(seconds))
