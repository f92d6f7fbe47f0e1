"""The rollouts of one process: its engine, and the models that it has opened.

Knows nothing of pytest, nor of other processes.
"""

from __future__ import annotations

import asyncio
import math
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from osmosis_ai.error_text import named_error
from osmosis_ai.running.captured import Captured, capture
from osmosis_ai.running.code_warning import BlockedLoop, CodeWarning
from osmosis_ai.running.engine import Engine
from osmosis_ai.running.isolation import Call, Isolation
from osmosis_ai.running.loop_watchdog import Blocked
from osmosis_ai.running.thread_calls import CallThreads
from osmosis_ai.running.timeouts import LeftBehind, TaskDeadline

from ..run_result import RolloutRecord, RunId
from .cached import ResultCache
from .prepare import open_model, ready_for
from .shared_rate_limit import SharedRateLimit
from .suite import Suite

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import ChatModel

    from ..spec import ModelSpec

T = TypeVar("T")


class RolloutPool:
    """Starts runs in the order in which they are offered, and returns their records."""

    def __init__(
        self,
        suites: Mapping[str, Suite],
        *,
        window: int,
        pool_size: int,
        base_urls: Mapping[str, str],
        on_finished: Callable[[RunId, RolloutRecord], None],
        rate_limit: SharedRateLimit,
        cache: ResultCache | None = None,
        on_stuck: Callable[[str], None] = lambda reason: None,
        on_idle: Callable[[], None] | None = None,
    ) -> None:
        """Runs in `cache` are not run; it is used in the thread that wants them.

        `on_idle` is called once, in that thread, when it waits for the first that ends.
        `on_stuck` is called, in another thread, with why nothing more can be run in this process.
        """
        self._suites = suites
        self._base_urls = base_urls
        self._on_finished = on_finished
        self._rate_limit = rate_limit
        self._cache = cache or ResultCache(suites)
        self._pool_size = pool_size
        self._warnings: deque[CodeWarning] = deque()
        self._models: dict[int, ChatModel] = {}
        self._bridges: dict[int, Bridge] = {}
        self._is_ready = False
        """Runs may start."""
        self._threads = CallThreads()
        self._on_stuck = on_stuck
        self._isolation = Isolation(self._moved, on_stuck=self._stuck)
        self._ending = threading.Event()
        self.halted: str | None = None
        """Why nothing more is started, once that is so."""
        # Here and not at the first call: in the event loop it would hold up what else runs there.
        # The client is the last: aiohttp, which it needs, is being imported in a thread.
        for suite in suites.values():
            for module in suite.agent.imports:
                import_module(module)
        import_module("osmosis_ai.models.transport.client")
        self._engine: Engine[RolloutRecord] = Engine(
            cast("Callable[[Hashable], Awaitable[RolloutRecord]]", self._execute),
            window=window,
            run_ahead=max(256, 8 * window),
            on_close=self._close_models,
            on_idle=on_idle,
        )

    def coming(self, keys: Iterable[RunId]) -> None:
        """Offer the next runs, in order; consumed as they start."""
        self._engine.offer(key for key in keys if key not in self._cache)

    def resize(self, window: int) -> None:
        """Set how many rollouts this process may have in flight."""
        self._engine.resize(window)

    def result(self, key: RunId) -> RolloutRecord:
        """Wait for a run and return its record; `EngineClosed` when it will not be run."""
        return self._cache.take(key) if key in self._cache else self._engine.wait(key)

    @property
    def in_flight(self) -> int:
        """How many runs have been started and have not ended."""
        return self._engine.in_flight

    def warnings(self) -> Iterator[CodeWarning]:
        """Yield what user code was found to do to the session since the last call."""
        while self._warnings:
            yield self._warnings.popleft()

    def halt(self, reason: str) -> None:
        """Start no further run."""
        if self.halted is None:
            self.halted = reason
            self._engine.halt()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long, since another process was refused; from any thread."""
        self._engine.soon(self._rate_limit.pause_for_others, seconds)

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""
        self._ending.set()
        self.halt("the session is ending")
        self._engine.cancel()
        self._isolation.interrupt_blocking()

    def close(self) -> None:
        """Cancel what is in flight and release everything."""
        self._ending.set()
        self._isolation.interrupt_blocking()
        if not self._engine.close():
            self._engine.abandon({})
        self._isolation.close()
        self._threads.close()

    def _moved(self, blocked: Blocked) -> None:
        """Note that user code blocks the event loop; in the watchdog's thread."""
        text, category = str(blocked), BlockedLoop.__name__
        self._warnings.append(CodeWarning(category, text, blocked.filename, blocked.line))

    def _stuck(self, key: RunId, held: str) -> None:
        """A run holds the event loop and ignores interruptions: no later result can come."""
        suite = self._suites[key.suite]
        error = f"timed out: {held} and cannot be interrupted"
        result = suite.lost(key, error=error, error_type="timeout")
        finished = RolloutRecord(result)
        self._on_finished(key, finished)
        reason = f"{held} and cannot be interrupted: nothing more can be run in its process"
        self.halt(reason)
        self._engine.abandon({key: finished})
        self._on_stuck(reason)

    async def _execute(self, key: RunId) -> RolloutRecord:
        suite = self._suites[key.suite]
        captured = capture()
        recorded = self._cache.unscored(key)
        if recorded is None and suite.calls_model and not self._is_ready:
            await ready_for([each.spec.model for each in self._suites.values()])
            self._is_ready = True
        services = _RunServices(self, key, captured)
        try:
            if recorded is not None:
                return self._ended(
                    key, captured, await suite.score_again(recorded, services=services)
                )
            return self._ended(key, captured, await suite.run(key, services=services))
        except LeftBehind:  # it has a record
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of one run: the others go on
            return self._ended(key, captured, _unrecorded(suite, key, error))

    def _ended(self, key: RunId, captured: Captured, finished: RolloutRecord) -> RolloutRecord:
        if sections := captured.sections(self._suites[key.suite].redact):
            finished = replace(finished, sections=sections)
        if self._engine.is_abandoned:
            return finished
        self._on_finished(key, finished)
        if finished.result.fatal:  # at once: workers hear of the session's halt a moment later
            self.halt(finished.result.error or "the endpoint refuses every call")
        return finished

    def _model(self, spec: ModelSpec) -> ChatModel:
        model = self._models.get(id(spec))
        if model is None:
            model = self._models[id(spec)] = self._opened(spec)
        return model

    def _bridge(self, spec: ModelSpec) -> Bridge:
        from osmosis_ai.bridge import Bridge  # for workflows and commands alone

        bridge = self._bridges.get(id(spec))
        if bridge is None:
            bridge = self._bridges[id(spec)] = Bridge(lambda: self._opened(spec))
        return bridge

    def _opened(self, spec: ModelSpec) -> ChatModel:
        return open_model(
            spec, base_urls=self._base_urls, pool_size=self._pool_size, rate_limit=self._rate_limit
        )

    async def _close_models(self) -> None:
        for bridge in self._bridges.values():
            bridge.close()
        for model in self._models.values():
            await model.aclose()


def _unrecorded(suite: Suite, key: RunId, error: BaseException) -> RolloutRecord:
    """Return the record of a run of which none could be made: values that nothing foresaw."""
    result = suite.lost(
        key, error=f"the run has no record: {named_error(error)}", error_type="internal"
    )
    # The frames alone: an exception that it came from may be what cannot be put into words.
    frames = "".join(traceback.format_tb(error.__traceback__))
    return RolloutRecord(result, suite.redact(f"{result.error}\n\n{frames}"))


class _RunServices:
    """`RolloutServices` of one run of a pool; to be made in the run's task."""

    __slots__ = ("_captured", "_key", "_pool", "_task")

    def __init__(self, pool: RolloutPool, key: RunId, captured: Captured) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pool = pool
        self._key = key
        self._captured = captured
        self._task = task

    async def model(self) -> ChatModel:
        return self._pool._model(self._spec)

    async def bridge(self) -> Bridge:
        return self._pool._bridge(self._spec)

    def run_sync(self, call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        return self._pool._threads.run(call, within_s)

    def write(self, kind: str, text: str, /) -> None:
        self._captured.write(kind, text)

    def deadline(
        self, seconds: float, /, *, leave: Callable[[], None], expired: Callable[[], None]
    ) -> TaskDeadline:
        return TaskDeadline(self._task, seconds, leave=leave, expired=expired)

    def isolate(
        self, owner: object, name: str, call: Call[T], /, *, within_s: float = math.inf
    ) -> Awaitable[T]:
        return self._pool._isolation.run(owner, name, call, within_s=within_s, job=self._key)

    def warn(self, warning: CodeWarning, /) -> None:
        self._pool._warnings.append(warning)

    def leave(self, record: RolloutRecord, /) -> None:
        pool = self._pool
        pool._engine.leave(self._task, pool._ended(self._key, self._captured, record))

    def is_ending(self) -> bool:
        return self._pool._ending.is_set()

    @property
    def _spec(self) -> ModelSpec:
        return self._pool._suites[self._key.suite].spec.model
