"""The runs of one process in flight, and the models that they call.

Knows nothing of pytest, nor of other processes.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from osmosis_ai.error_text import named_error
from osmosis_ai.running.captured import Captured, capture
from osmosis_ai.running.code_warning import BlockedLoop, CodeWarning
from osmosis_ai.running.engine import Engine
from osmosis_ai.running.isolation import Isolation
from osmosis_ai.running.section import LeftBehind
from osmosis_ai.running.thread_calls import CallThreads
from osmosis_ai.running.watchdog import Blocked

from ..dataset.errors import DatasetError
from ..run_result import RolloutRecord, RunId
from .cached import ResultCache
from .prepare import open_model, ready_for
from .services import RunServices
from .suite import Suite

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.models.rate_limiter import RateLimiter

    from ..spec import ModelSpec


class RolloutPool(Engine[RunId, RolloutRecord]):
    """Starts runs in the order in which they are offered, and returns their records."""

    def __init__(
        self,
        suites: Mapping[str, Suite],
        *,
        window: int,
        pool_size: int,
        base_urls: Mapping[str, str],
        on_finished: Callable[[RunId, RolloutRecord], None],
        rate_limit: RateLimiter,
        cache: ResultCache | None = None,
        on_stuck: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """Runs in `cache` are not run; it is used in the thread that wants them.

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
        self._threads = CallThreads()
        self._on_stuck = on_stuck
        self._guards = Isolation(self._moved, on_stuck=self._stuck)
        # Here and not at the first call: in the event loop it would hold up what else runs there.
        # The client is the last: aiohttp, which it needs, is being imported in a thread.
        for suite in suites.values():
            for module in suite.agent.imports:
                import_module(module)
        import_module("osmosis_ai.models.transport.client")
        super().__init__(
            self._execute,
            window=window,
            run_ahead=max(256, 8 * window),
            on_close=self._close_models,
        )

    def coming(self, keys: Iterable[RunId]) -> None:
        """Offer the next runs, in order; consumed as they start."""
        self.offer(key for key in keys if key not in self._cache)

    def result(self, key: RunId) -> RolloutRecord:
        """Wait for a run and return its record; `EngineClosed` when it will not be run."""
        return self._cache.take(key) if key in self._cache else self.wait(key)

    def warnings(self) -> Iterator[CodeWarning]:
        """Yield what user code was found to do to the session since the last call."""
        while self._warnings:
            yield self._warnings.popleft()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long, since another process was refused; from any thread."""
        self.soon(self._rate_limit.pause_for_others, seconds)

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""
        self._guards.is_ending = True
        super().cancel()

    def close(self) -> bool:
        """Cancel what is in flight and release everything."""
        self._guards.is_ending = True
        is_closed = super().close()
        self._guards.close()
        self._threads.close()
        return is_closed

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
        self.abandon({key: finished})
        self._on_stuck(reason)

    async def _execute(self, key: RunId) -> RolloutRecord:
        suite, captured = self._suites[key.suite], capture()
        recorded, spec, model = self._cache.unscored(key), suite.spec.model, None
        if recorded is None and suite.calls_model:
            try:
                model = self._models.get(id(spec)) or await self._open_model(spec)
            except ValueError as error:  # a variable of the environment is unusable, in every run
                lost = suite.lost(key, error=str(error), error_type="provider")
                record = RolloutRecord(replace(lost, fatal=True))
                return self._finish(key, captured, record)
        task = asyncio.current_task()
        assert task is not None
        services = RunServices(
            key,
            self._guards,
            self._threads,
            captured,
            model,
            bridge=partial(self._bridge, spec),
            warn=self._warnings.append,
            leave=lambda record: self.leave(task, self._finish(key, captured, record)),
        )
        try:
            if recorded is not None:
                return self._finish(key, captured, await suite.score_again(recorded, services))
            return self._finish(key, captured, await suite.run(key, services))
        except LeftBehind:  # it has a record
            raise
        except DatasetError as changed:
            gone = suite.lost(key, error=str(changed), error_type="internal")
            return self._finish(key, captured, RolloutRecord(gone))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of one run: the others go on
            return self._finish(key, captured, _unrecorded(suite, key, error))

    def _finish(self, key: RunId, captured: Captured, finished: RolloutRecord) -> RolloutRecord:
        if captured.texts:
            sections = captured.sections(self._suites[key.suite].redact)
            finished = replace(finished, sections=sections)
        if self.is_abandoned:
            return finished
        self._on_finished(key, finished)
        if finished.result.fatal:  # at once: workers hear of the session's halt a moment later
            self.halt(finished.result.error or "the endpoint refuses every call")
        return finished

    async def _open_model(self, spec: ModelSpec) -> ChatModel:
        await ready_for([each.spec.model for each in self._suites.values()])
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
