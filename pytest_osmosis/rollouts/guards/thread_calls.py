"""Synchronous calls off the event loop, in daemon threads: a stuck call never blocks shutdown.

`concurrent.futures` joins its threads when the interpreter exits, whatever they do; so do asyncio's
default executor and `asyncio.to_thread`. A call that never returns costs its own thread, and delays
neither a later call nor the end of the process. Calls that are made in one turn of the loop are
handed over together, and the loop waits a moment for them: most are so quick that this is
shorter than two more turns of the loop. Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from .timeouts import Deadline, DeadlineExceeded

T = TypeVar("T")

QUICK_S = 0.002
"""How long the loop waits for calls that were handed over, unless earlier ones are under way."""


class _Call:
    """One call, and the future that its caller awaits."""

    __slots__ = ("call", "context", "deadline", "future", "settle", "value", "within_s")

    def __init__(
        self, call: Callable[[], Any], future: asyncio.Future[Any], within_s: float
    ) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.future = future
        self.within_s = within_s
        self.deadline: Deadline | None = None
        self.settle: Callable[[Any], None] = future.set_exception
        self.value: Any = None

    def make(self) -> None:
        """Make the call, in a thread; keep what came of it."""
        try:
            self.value = self.context.run(self.call)
            self.settle = self.future.set_result
        except (StopIteration, GeneratorExit) as error:  # no future can carry them to a coroutine
            self.value = RuntimeError(f"the call raised {type(error).__name__}")
            self.value.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
            self.value = error

    def limit(self) -> None:
        """Give the call up when its time is up; in the loop's thread."""
        if self.within_s < math.inf and not self.future.done():
            expire = partial(_expire, self.future, self.within_s)
            self.deadline = Deadline(self.future.get_loop(), self.within_s, expire)

    def end(self) -> None:
        """Give the caller what came of it; in the loop's thread."""
        if self.deadline is not None:
            self.deadline.cancel()
        if not self.future.done():  # its waiter may have given up, or its time may be up
            self.settle(self.value)


class CallThreads:
    """Makes calls for one event loop; there are as many threads as calls under way at once."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._new: list[_Call] = []
        """Calls of this turn of the loop."""
        self._under_way = 0
        """Calls that were handed over and have not ended."""
        self._is_waiting = False
        """The loop waits until none is under way, and takes the results then."""
        self._all_ended = threading.Event()
        self._ended: list[_Call] = []
        """Those that the loop has not taken yet."""

    def run(self, call: Callable[[], T], within_s: float = math.inf) -> Awaitable[T]:
        """Make `call` in the caller's context and return its result, or raise what it raised.

        Raises:
            DeadlineExceeded: after `within_s` seconds; the call itself goes on.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._new.append(_Call(call, future, within_s))
        if len(self._new) == 1:
            loop.call_soon(self._hand_over)
        return future

    def close(self) -> None:
        """Let the threads end, each after its call."""
        for _ in range(self._threads):
            self._calls.put(None)

    # ---- in the loop's thread

    def _hand_over(self) -> None:
        calls, self._new = self._new, []
        with self._lock:
            self._is_waiting = not self._under_way
            self._under_way += len(calls)
        self._all_ended.clear()
        for call in calls:
            self._calls.put(call)
        try:
            if self._is_waiting:
                self._wait_for_quick()
            self._serve_at_least(self._under_way)
        finally:  # also where no thread can be started: they wait for one that is there
            for call in calls:
                call.limit()

    def _wait_for_quick(self) -> None:
        try:
            self._serve_at_least(1)
            self._all_ended.wait(QUICK_S)
        finally:
            with self._lock:
                self._is_waiting = False
        self._take()

    def _serve_at_least(self, threads: int) -> None:
        while self._threads < threads:
            threading.Thread(target=self._serve, name="osmosis-call", daemon=True).start()
            self._threads += 1

    def _take(self) -> None:
        with self._lock:
            ended, self._ended = self._ended, []
        for call in ended:
            call.end()

    # ---- in a thread

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.make()
            self._made(call)
            del call  # nothing of it is kept while the thread is idle

    def _made(self, call: _Call) -> None:
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._all_ended.set()
            # Else the loop has been woken, or waits here, and is about to take them all.
            wakes = not self._ended and not self._is_waiting
            self._ended.append(call)
        if wakes:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                call.future.get_loop().call_soon_threadsafe(self._take)


def _expire(future: asyncio.Future[Any], seconds: float) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded(seconds))
