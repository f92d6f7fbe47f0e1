"""Threads in which agents run, so that an agent never blocks the server.

All rollouts share one thread's event loop, as in an evaluation, until one of them blocks it with
synchronous code. Then waiting and later rollouts get other threads, until the first is free
again. Knows rollouts only as coroutines.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...leavable import Leavable
from ...running.thread_frames import frame_of

R = TypeVar("R")
T = TypeVar("T")

logger = logging.getLogger(__name__)

BLOCKED_LOOKS = 5
"""A loop that is found silent so often in a row is blocked; counted in looks, not in seconds, since
a machine that stands still stops the looking thread as well."""
_WATCH_S = 0.1
_CLOSE_S = 2.0
_LEAVE_S = 0.2


class Job(Generic[R, T]):
    """One coroutine on its way through a thread; `result` belongs to the server's loop."""

    def __init__(self, make: Callable[[R], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._home = asyncio.get_running_loop()
        self._claim = threading.Lock()
        self._task: asyncio.Task[Any] | None = None
        self._work: Leavable[T] | None = None
        self._cancelled = False
        self.result: asyncio.Future[T] = self._home.create_future()

    def cancel(self) -> None:
        """Cancel the coroutine; its result is set when it ends."""
        self._cancelled = True  # before the task is looked for: `_run` looks in the other order
        task = self._task
        if task is not None and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)

    def leave(self) -> str:
        """Resume the coroutine no more, whatever it does; return what it is at."""
        if self._work is None:
            return "its start"
        self._work.leave()
        self.cancel()
        return self._work.where()

    @property
    def started(self) -> bool:
        """Whether some thread has claimed it."""
        return self._claim.locked()

    def start(self, worker: Worker[R]) -> None:
        """In the worker's thread: run it as soon as it has its turn there."""
        worker.loop.create_task(self._run(worker))

    async def _run(self, worker: Worker[R]) -> T | None:
        # Only now: what waits its turn behind a task that blocks can still go elsewhere.
        if not self._claim.acquire(blocking=False):
            return None
        self._task = task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(self._done)
        if self._cancelled:
            raise asyncio.CancelledError
        self._work = Leavable(self._make(worker.resource))
        return await self._work

    def _done(self, task: asyncio.Task[Any]) -> None:
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self._settle, task)

    def _settle(self, task: asyncio.Task[Any]) -> None:
        if self.result.done():
            if not task.cancelled():
                task.exception()
        elif task.cancelled():
            self.result.cancel()
        elif error := task.exception():
            self.result.set_exception(error)
        else:
            self.result.set_result(task.result())


class Worker(Generic[R]):
    """A daemon thread with an event loop and what its coroutines share there."""

    resource: R

    def __init__(
        self,
        number: int,
        open_resource: Callable[[], R],
        close_resource: Callable[[R], Coroutine[Any, Any, None]],
    ) -> None:
        self._open_resource = open_resource
        self._close_resource = close_resource
        self.loop = asyncio.new_event_loop()
        self.jobs: set[Job[R, Any]] = set()
        """Given to this worker and not ended; the server's thread alone looks at it."""
        self._asked = False
        self._looks = 0
        self._stopping = False
        self._thread = threading.Thread(
            target=self._serve, name=f"osmosis-agent-{number}", daemon=True
        )
        self._thread.start()

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Call `function` in the worker's loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *args)

    def silent_looks(self) -> int:
        """Return how many checks in a row the loop has not responded to."""
        if self._asked:
            self._looks += 1
        else:
            self._asked, self._looks = True, 0
            self.call(self._answer)
        return self._looks

    def where(self) -> str:
        """Return what the thread is at: the innermost frames."""
        frame = frame_of(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame, limit=3)).strip() if frame else "ended"

    def stop(self) -> None:
        """End the loop after its current callback."""
        self.call(self._stop)

    def join(self, timeout_s: float) -> None:
        """Wait for the thread at most `timeout_s`."""
        self._thread.join(timeout_s)

    def _answer(self) -> None:
        self._asked = False

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._prepare)
        while not self._stopping:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A task of the agent's own called sys.exit(): it ends that task, not the server.
                logger.warning("a task of the agent ended with sys.exit(); the server goes on")
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left, timeout=_LEAVE_S))
        for task in left:
            # What does not end is known to have been left behind; asyncio would complain again.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        # Here and not where the server closes: a thread that was stuck then still gets here.
        self.loop.run_until_complete(self._close_resource(self.resource))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _prepare(self) -> None:
        self.resource = self._open_resource()

    def _stop(self) -> None:
        self._stopping = True
        self.loop.stop()


class Workers(Generic[R]):
    """As many workers as are needed, mostly one. Lives in the server's loop."""

    def __init__(
        self,
        open_resource: Callable[[], R],
        close_resource: Callable[[R], Coroutine[Any, Any, None]],
        *,
        most: int,
    ) -> None:
        self._open_resource = open_resource
        self._close_resource = close_resource
        self._most = most
        self._all: list[Worker[R]] = [Worker(0, open_resource, close_resource)]
        self._blocked: set[Worker[R]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._warned = False

    def run(self, make: Callable[[R], Coroutine[Any, Any, T]]) -> Job[R, T]:
        """Run `make(resource)` in a thread that is free to."""
        job: Job[R, T] = Job(make)
        self._hand(job, self._free())
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._look())
        return job

    async def call(self, function: Callable[[], Any]) -> None:
        """Call `function` in the first worker's loop, and await what it returns if it can be."""

        async def made(resource: R) -> None:
            found = function()
            if isinstance(found, Awaitable):
                await found

        await self.run(made).result

    async def close(self) -> None:
        """End the threads; one that is stuck in synchronous code is left behind."""
        if self._watch is not None:
            self._watch.cancel()
        for worker in self._all:
            worker.stop()
        deadline = time.monotonic() + _CLOSE_S
        for worker in self._all:
            await asyncio.to_thread(worker.join, max(0.0, deadline - time.monotonic()))

    def _hand(self, job: Job[R, Any], worker: Worker[R]) -> None:
        worker.jobs.add(job)
        job.result.add_done_callback(lambda _: worker.jobs.discard(job))
        worker.call(job.start, worker)

    def _free(self) -> Worker[R]:
        first, *others = self._all
        if first not in self._blocked:
            return first
        for worker in others:
            if not worker.jobs and worker not in self._blocked:
                return worker
        if len(self._all) > self._most:
            return min(self._all, key=lambda worker: len(worker.jobs))
        worker = Worker(len(self._all), self._open_resource, self._close_resource)
        self._all.append(worker)
        return worker

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            for worker in tuple(self._all):
                if worker.jobs or worker in self._blocked:
                    self._look_at(worker)

    def _look_at(self, worker: Worker[R]) -> None:
        if worker.silent_looks() < BLOCKED_LOOKS:
            self._blocked.discard(worker)
            return
        if worker not in self._blocked:
            self._blocked.add(worker)
            self._warn(worker)
        for job in tuple(worker.jobs):
            if not job.started:
                worker.jobs.discard(job)
                self._hand(job, self._free())

    def _warn(self, worker: Worker[R]) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "the agent blocks its event loop with synchronous code; further rollouts run in "
                "threads of their own meanwhile. It is at:\n%s",
                worker.where(),
            )
