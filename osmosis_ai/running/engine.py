"""Runs coroutines ahead of the thread that waits for their results: the window of rollouts.

One event loop in a separate thread; at most `window` jobs are in flight, started in the order in
which they were offered; results that were not fetched yet are bounded by `run_ahead`. The caller
fetches them in any order, and never delays the loop. Knows nothing of agents, rows or pytest.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Generic, TypeVar

from . import loop_thread
from .loop_thread import LoopThread

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

WAKE_BATCH = 32
"""Wake the waiting thread after this many results: context switches are expensive."""
FLUSH_INTERVAL_S = 0.005
"""How long fewer results may wait for others."""
SIGNAL_CHECK_S = 0.5
"""Look for signals this often: one that comes just before the wait does not wake the thread."""
IDLE_S = 0.05
"""The waiting thread has time for other things once it has waited for so long."""
CLOSE_TIMEOUT_S = 8.0
"""A loop that has not shut down after this time is given up."""

ENDING = "the session is ending"


class EngineClosed(Exception):
    """The job was cancelled, or never started, because the engine was closed."""


class Engine(Generic[K, T]):
    """A window of jobs in flight; a job is `execute(key)`."""

    def __init__(
        self,
        execute: Callable[[K], Awaitable[T]],
        *,
        window: int,
        run_ahead: int,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._execute = execute
        self._window = window
        self._run_ahead = max(run_ahead, 1)
        self._on_close = on_close
        self._sources: deque[Iterator[K]] = deque()
        self._started: set[K] = set()
        """Started and not fetched yet."""
        self._out_of_turn: set[K] = set()
        """Started before their source came to them."""
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self.when_idle: list[Callable[[], object]] = []
        """What the waiting thread does when it has time."""
        self._done: dict[K, T | BaseException] = {}
        self._waited_for: K | None = None
        self._arrived = threading.Lock()
        self._arrived.acquire()
        self._wanted = False
        """The result that the caller waits for is there, and the caller has not been woken yet."""
        self._waking: asyncio.TimerHandle | None = None
        self._throttled = False
        self.halted: str | None = None
        """Why no further job is started, once that is so."""
        self.is_abandoned = False
        """Whether `abandon` was called."""
        self._pumping = False
        self._jobs_context = contextvars.copy_context()
        """What each job starts with: what one sets for itself, the next does not see."""
        self._own_context = contextvars.copy_context()
        """Where the engine's own callbacks run."""
        self._thread = LoopThread("osmosis-engine")
        self.loop = self._thread.loop
        self.soon = self._thread.soon

    def offer(self, keys: Iterable[K]) -> None:
        """Offer jobs, in order; from any thread. `keys` is consumed as jobs start."""
        self.soon(self._offer, iter(keys))

    def resize(self, window: int) -> None:
        """Change how many jobs may be in flight; from any thread."""
        self.soon(self._resize, window)

    def wait(self, key: K) -> T:
        """Block until the job has ended and return its result, once.

        Raises:
            EngineClosed: when the engine was halted or closed before the job ended.
        """
        if key not in self._done:
            self._waited_for = key
            if key not in self._started:
                self.soon(self._start_out_of_turn, key)
            while key not in self._done:
                if self.is_abandoned:
                    raise EngineClosed
                timeout_s = IDLE_S if self.when_idle else SIGNAL_CHECK_S
                if not self._arrived.acquire(timeout=timeout_s) and self.when_idle:
                    self.when_idle.pop(0)()
            self._waited_for = None
        result = self._done.pop(key)
        self._started.discard(key)
        if self._throttled:
            self._throttled = False
            self.soon(self._pump)
        if isinstance(result, BaseException):
            raise result
        return result

    def halt(self, reason: str) -> None:
        """Start no more jobs; what is in flight continues; waiting for the rest: `EngineClosed`."""
        if self.halted is None:
            self.halted = reason

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""
        self.halt(ENDING)
        self.soon(self._cancel)

    @property
    def in_flight(self) -> int:
        """How many jobs have been started and have not ended."""
        return len(self._tasks)

    def abandon(self, results: Mapping[K, T]) -> None:
        """Give the loop up, with these results as the last; from any thread."""
        self.halt(ENDING)
        self.is_abandoned = True
        self._done.update(results)
        self._started.update(results)
        if self._arrived.locked():
            self._arrived.release()

    def leave(self, key: K, result: T | BaseException) -> None:
        """End a job that is in flight, though its task may continue; from the loop's thread."""
        if self._tasks.pop(key, None) is not None:
            self._deliver(key, result)
            self._pump()

    def close(self) -> bool:
        """Cancel what is in flight, release what was opened, end the thread. Idempotent.

        Return False when the loop is blocked: it is given up.
        """
        self.halt(ENDING)
        if self.is_abandoned or self._thread.close(CLOSE_TIMEOUT_S, self._on_close):
            return True
        self.abandon({})
        return False

    # ---- in the loop's thread

    def _offer(self, keys: Iterator[K]) -> None:
        self._sources.append(keys)
        self._pump()

    def _resize(self, window: int) -> None:
        self._window = window
        self._pump()

    def _start_out_of_turn(self, key: K) -> None:
        """Start a job that is waited for, before its turn."""
        if key in self._started:
            return
        if self.halted is not None:
            self._started.add(key)
            self._deliver(key, EngineClosed())
            return
        self._out_of_turn.add(key)
        self._start(key)

    def _pump(self) -> None:
        """Start one job and schedule the next: one that blocks the loop delays only itself."""
        self._pumping = False
        if self.halted is not None or len(self._tasks) >= self._window:
            return
        if len(self._done) >= self._run_ahead:
            self._throttled = True
            return
        key = self._next()
        if key is not None:
            self._start(key)
            if len(self._tasks) < self._window:
                self._pump_soon()

    def _next(self) -> K | None:
        while self._sources:
            for key in self._sources[0]:
                if key not in self._out_of_turn:
                    return key
                self._out_of_turn.discard(key)
            self._sources.popleft()
        return None

    def _start(self, key: K) -> None:
        self._started.add(key)
        task = self._jobs_context.run(self.loop.create_task, self._run(key))
        self._tasks[key] = task
        task.add_done_callback(partial(self._ended, key), context=self._own_context)

    async def _run(self, key: K) -> None:
        """Run a job; its slot is free immediately, not a turn of the loop after its task's end."""
        self.leave(key, await self._execute(key))

    def _pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            self.loop.call_soon(self._pump, context=self._own_context)

    def _ended(self, key: K, task: asyncio.Task[None]) -> None:
        error = EngineClosed() if task.cancelled() else task.exception()
        if error is not None:  # else its result has been delivered
            self.leave(key, error)

    def _deliver(self, key: K, result: T | BaseException) -> None:
        self._done[key] = result
        if self._waited_for == key:
            self._wanted = True
        if not self._wanted:
            return
        if len(self._done) >= WAKE_BATCH or self.halted is not None or not self._tasks:
            self._wake()
        elif self._waking is None:
            self._waking = self.loop.call_later(FLUSH_INTERVAL_S, self._wake)

    def _wake(self) -> None:
        self._wanted = False
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        # Unlocked already when the last result came before its waiter had to block.
        if self._arrived.locked():
            self._arrived.release()

    def _cancel(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self.loop.call_later(loop_thread.CANCEL_TIMEOUT_S, self._give_up, list(self._tasks))

    def _give_up(self, keys: list[K]) -> None:
        for key in keys:
            if self._tasks.pop(key, None) is not None:
                self._deliver(key, EngineClosed())
