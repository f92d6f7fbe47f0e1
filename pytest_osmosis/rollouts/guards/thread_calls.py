"""Synchronous calls of the user's, off the event loop, each in a thread that nobody must wait for.

To wake a thread, and the loop for its result, costs more than a quick call itself: one thread
makes quick calls one after the other and tells their results together. Calls that take their time
get a thread each. Threads are daemons; one that never comes back costs itself alone, neither a
later call nor the end of the process. Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from .timeouts import Deadline, DeadlineExceeded, Deadlines, deadlines_of

T = TypeVar("T")
_Call = tuple[contextvars.Context, Callable[[], Any], "asyncio.Future[Any]", "Deadline | None"]

SLOW_S = 0.001
"""Once a call has taken so long, the next ones are not made one after the other."""
BATCH_S = 0.001
"""A thread that has just been woken is left alone for so long, while quick calls gather."""
PATIENCE_S = 0.01
"""How long a call may wait behind one that was expected to be quick."""


class CallThreads:
    """Makes calls for one event loop."""

    def __init__(self) -> None:
        self._deadlines: Deadlines | None = None
        self._calls: deque[_Call] = deque()
        """Those that no thread has taken yet."""
        self._ended: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        """Guards which calls wait and which threads are awake."""
        self._awake = 0
        self._woken_at = 0.0
        self._parked: list[threading.Lock] = []
        self._outstanding = 0
        self._slow = False
        self._told = False
        """The loop is about to look at what has ended."""
        self._gathering: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._closed = False

    def run(self, call: Callable[[], T], within_s: float = math.inf) -> Awaitable[T]:
        """Make `call` soon, in the caller's context; the result, or what it raised, is awaited.

        Raises:
            DeadlineExceeded: after `within_s` seconds; the call itself goes on.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        deadline = None
        if within_s < math.inf:
            if self._deadlines is None:
                self._deadlines = deadlines_of(loop)
            deadline = self._deadlines.start(within_s, partial(_give_up, future, within_s))
        self._calls.append((contextvars.copy_context(), call, future, deadline))
        self._outstanding += 1
        if self._slow:
            self._wake(loop)
        elif not self._awake and self._gathering is None:
            wake_at = self._woken_at + BATCH_S
            if wake_at <= loop.time():
                self._wake(loop)
            else:
                self._gathering = loop.call_at(wake_at, self._gathered, loop)
        if self._watching is None:
            self._watching = loop.call_later(PATIENCE_S, self._watch, loop)
        return future

    def close(self) -> None:
        """Let the free threads end."""
        with self._lock:
            self._closed = True
            parked, self._parked = self._parked, []
        for parking in parked:
            parking.release()

    # ---- in the loop's thread

    def _gathered(self, loop: asyncio.AbstractEventLoop) -> None:
        self._gathering = None
        if self._calls and not self._awake:
            self._wake(loop)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Every now and then: does a call, or a result, wait behind one that takes its time?"""
        self._watching = None
        self._settle()
        for _ in range(min(len(self._calls), max(1, self._awake))):
            self._wake(loop)
        if self._outstanding:
            self._watching = loop.call_later(PATIENCE_S, self._watch, loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._woken_at = loop.time()
        with self._lock:
            self._awake += 1
            parking = self._parked.pop() if self._parked else None
        if parking is not None:
            parking.release()
        else:
            threading.Thread(
                target=self._serve, args=(loop,), name="osmosis-call", daemon=True
            ).start()

    def _settle(self) -> None:
        self._told = False
        while self._ended:
            self._outstanding -= 1
            self._ended.popleft()()

    # ---- in threads of their own

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        parking = threading.Lock()
        parking.acquire()
        while True:
            with self._lock:
                taken = self._calls.popleft() if self._calls else None
                if taken is None:
                    if self._closed:
                        return
                    self._awake -= 1
                    self._parked.append(parking)
            if taken is None:
                parking.acquire()
            else:
                self._make(*taken)
                del taken
                self._tell(loop)

    def _make(
        self,
        context: contextvars.Context,
        call: Callable[[], Any],
        future: asyncio.Future[Any],
        deadline: Deadline | None,
    ) -> None:
        settle: Callable[[Any], None]
        started = time.perf_counter()
        try:
            settle, value = future.set_result, context.run(call)
        except BaseException as error:  # noqa: BLE001 - handed to whoever awaits the call
            settle, value = future.set_exception, error
        self._slow = time.perf_counter() - started > SLOW_S

        def settle_once() -> None:
            if deadline is not None:
                deadline.cancel()
            if not future.done():  # its waiter may have given up
                settle(value)

        self._ended.append(settle_once)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the loop, unless it is about to look or more results follow at once."""
        if self._told or (self._calls and not self._slow):
            return
        self._told = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._settle)


def _give_up(future: asyncio.Future[Any], seconds: float) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded(seconds))
