"""The runs of one process in flight, and the models that they call.

Knows nothing of pytest, nor of other processes.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from ..dataset.json_copy import json_copy
from ..errors import ConfigurationError
from ..run_result import OWN_MODEL, RolloutRecord, RunId, place_of
from .cached import ResultCache
from .prepare import endpoint_of, open_model, ready_for
from .rollout import Rollout
from .services import Services
from .suite import Suite

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.embedded import EmbeddedEndpoint
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.models.rate_limiter import RateLimiter

    from ..spec import ModelSpec
    from .around import AroundRuns


def import_apart(module: str) -> None:
    """Import a module in a thread, and wait for it.

    A signal that ends the session reaches the thread that waits: numpy, whose import it broke off,
    cannot be imported again for the report.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(import_module, module).result()


class _SharedRollout:
    """A rollout that runs of several suites are; what was said is in the run log, if it can be."""

    def __init__(self, takers: int) -> None:
        self.made: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()
        """The run that has made it."""
        self.takers = takers
        """How many other runs may come for it."""
        self.record: RolloutRecord | None = None
        """What the log could not keep as it was."""
        self.sections: Sequence[tuple[str, str]] = ()


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
        rate_limit: RateLimiter,
        cache: ResultCache | None = None,
        around: Sequence[AroundRuns] = (),
        on_stuck: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """Runs in `cache` are not run; it is used in the thread that wants them.

        `on_stuck` is called, in another thread, with why nothing more can be run in this process.
        """
        self._suites = suites
        self._base_urls = base_urls
        self._on_finished = on_finished
        self._cache = cache or ResultCache(suites)
        self._pool_size = pool_size
        self._models: dict[int, ChatModel] = {}
        self._bridges: dict[int, Bridge] = {}
        self._endpoints: dict[str, EmbeddedEndpoint] = {}
        named = {name: suite.info.shares for name, suite in suites.items()}
        several = Counter(named.values())
        self._shares = {name: what for name, what in named.items() if what and several[what] > 1}
        """What the rollouts of suites are called that share them with other suites."""
        self._takers = {name: several[what] - 1 for name, what in self._shares.items()}
        self._shared: dict[RunId, _SharedRollout] = {}
        """Rollouts that runs of several suites are, until the last of them has taken it."""
        self._on_stuck = on_stuck
        self._guards = Isolation(self._moved, on_stuck=self._stuck)
        self.around = around
        """What features put around runs."""
        self._services = Services(
            guards=self._guards,
            threads=CallThreads(),
            rate_limit=rate_limit,
            bridge=self._bridge,
            leave=self._leave,
            around=around,
        )
        self.warnings = self._services.warnings
        """What user code was found to do to the session, until it is taken."""
        self.last_words: str | None = None
        """What is to be said once it is closed."""
        # Here and not at the first call: in the event loop it would hold up what else runs there.
        for suite in suites.values():
            for module in suite.agent.imports:
                import_module(module)
        if any(suite.spec.model.sends_requests for suite in suites.values()):
            import_module("osmosis_ai.models.transport.client")
        self._engine = Engine(
            self._execute,
            window=window,
            run_ahead=max(256, 8 * window),
            on_close=self._close_models,
        )

    def import_when_idle(self, modules: Iterable[str]) -> None:
        """Import modules once the first requests have been sent."""
        self._engine.when_idle += [partial(import_apart, module) for module in modules]

    @property
    def halted(self) -> str | None:
        """Why nothing more is started, once that is so."""
        return self._engine.halted

    @property
    def in_flight(self) -> int:
        """How many rollouts have been started and have not ended."""
        return self._engine.in_flight

    def coming(self, keys: Iterable[RunId]) -> None:
        """Offer the next runs, in order; consumed as they start."""
        self._engine.offer(key for key in keys if key not in self._cache.runs)

    def result(self, key: RunId) -> RolloutRecord:
        """Wait for a run and return its record; `EngineClosed` when it will not be run."""
        return self._cache.record(key) if key in self._cache.runs else self._engine.wait(key)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long, since another process was refused; from any thread."""
        self._engine.soon(self._services.rate_limit.pause_for_others, seconds)

    def resize(self, window: int) -> None:
        """Set how many rollouts may be in flight; from any thread."""
        self._engine.resize(window)

    def halt(self, reason: str) -> None:
        """Start no further run; what is in flight continues."""
        self._engine.halt(reason)

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""
        self._guards.is_ending = True
        self._engine.cancel()

    def close(self) -> bool:
        """Cancel what is in flight and release everything."""
        self._guards.is_ending = True
        is_closed = self._engine.close()
        self._guards.close()
        self._services.threads.close()
        for around in self.around:
            self.last_words = around.close() or self.last_words
        return is_closed

    def _moved(self, blocked: Blocked) -> None:
        """Note that user code blocks the event loop; in the watchdog's thread."""
        text, category = str(blocked), BlockedLoop.__name__
        self.warnings.append(CodeWarning(category, text, blocked.filename, blocked.line))

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
        """Run a rollout, or take the one that a run of another suite is, or was."""
        if key.suite in self._shares and (record := await self._take_shared(key)) is not None:
            return self._finish(key, capture(), record)
        suite, captured, log = self._suites[key.suite], capture(), self._cache.log
        spec, model = suite.spec.model, None
        recorded = log.unscored(key) if log is not None and log.has_unscored else None
        for around in self.around:
            around.begin(key, again=recorded is not None)
        try:
            if recorded is None and spec.model and spec.is_asked:
                model = self._models.get(id(spec)) or await self._open_model(spec)
            rollout = Rollout(suite, key, self._services, captured, model)
            if recorded is None:
                record = await suite.run(rollout)
            else:
                record = await rollout.score_again(recorded)
            return self._finish(key, captured, record)
        except LeftBehind:  # it has a record
            raise
        except DatasetError as changed:
            record = RolloutRecord(suite.lost(key, error=str(changed), error_type="internal"))
        except ConfigurationError as error:  # a variable of the environment is unusable, everywhere
            lost = suite.lost(key, error=str(error), error_type="provider")
            record = RolloutRecord(replace(lost, fatal=True))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of one run: the others continue
            record = _unrecorded(suite, key, error)
        return self._finish(key, captured, record)

    async def _take_shared(self, key: RunId) -> RolloutRecord | None:
        """Return the rollout of another suite's run, which may still be under way.

        None: this run makes it, for the others too.
        """
        group = self._group(key)
        shared = self._shared.get(group)
        if shared is None:
            shared = self._shared[group] = _SharedRollout(self._takers[key.suite])
            if (kept := self._cache.payer_of(key)) is None:
                return None
            shared.made.set_result(kept)
        run = await asyncio.shield(shared.made)
        record = shared.record or self._cache.rollout_of(run)
        shared.takers -= 1
        if not shared.takers:
            self._shared.pop(group, None)
        taken = replace(record.shared_with(key.suite), sections=shared.sections)
        return replace(taken, messages=json_copy(taken.messages))

    def _group(self, key: RunId) -> RunId:
        """Return what names the one rollout of several suites' runs."""
        return key._replace(suite=self._shares[key.suite])

    def _leave(self, record: RolloutRecord, captured: Captured) -> None:
        """End a run whose task is in code that ignores its cancellation."""
        key = record.result.run_id
        self._engine.leave(key, self._finish(key, captured, record))

    def _finish(self, key: RunId, captured: Captured, finished: RolloutRecord) -> RolloutRecord:
        if captured.texts:
            sections = captured.sections()
            finished = replace(finished, sections=sections)
        for around in self.around:
            around.end(finished)
        if self._engine.is_abandoned:
            return finished
        self._on_finished(key, finished)
        result = finished.result
        if result.fatal and result.error_kind != "bad_request":  # at once: no run can be made
            self.halt(result.error or "no run can be made")
        shared = self._shared.get(self._group(key)) if key.suite in self._shares else None
        if shared is not None and not shared.made.done():
            if not self._cache.holds(key):
                copied = json_copy(finished.messages)  # a test may change its own
                shared.record = replace(finished, messages=copied)
            shared.sections = finished.sections
            shared.made.set_result(key)
        return finished

    async def _open_model(self, spec: ModelSpec) -> ChatModel:
        await ready_for([each.spec.model for each in self._suites.values()])
        model = self._models.get(id(spec))
        if model is None:
            try:
                model = self._models[id(spec)] = self._opened(spec)
            except ValueError as error:
                raise ConfigurationError(str(error)) from None
        return model

    def _bridge(self, spec: ModelSpec) -> Bridge:
        """Return a model behind a URL on loopback."""
        from osmosis_ai.bridge import Bridge  # for workflows and commands alone

        bridge = self._bridges.get(id(spec))
        if bridge is None:
            bridge = self._bridges[id(spec)] = Bridge(lambda: self._opened(spec))
        return bridge

    def _opened(self, spec: ModelSpec) -> ChatModel:
        persona = spec.persona
        if persona is not None and persona not in self._base_urls:  # a marker alone names it
            from osmosis_ai.embedded import start_embedded

            endpoint = self._endpoints[persona] = start_embedded(persona)
            self._base_urls = {**self._base_urls, persona: endpoint.base_url}
        place = place_of(spec.model or OWN_MODEL, endpoint_of(spec))
        model = open_model(
            spec,
            base_urls=self._base_urls,
            pool_size=self._pool_size,
            rate_limit=self._services.rate_limit.at(place),
        )
        for around in self.around:
            model = around.model(model, spec)
        return model

    async def _close_models(self) -> None:
        for bridge in self._bridges.values():
            bridge.close()
        for model in self._models.values():
            await model.aclose()
        for endpoint in self._endpoints.values():
            endpoint.close()


def _unrecorded(suite: Suite, key: RunId, error: BaseException) -> RolloutRecord:
    """Return the record of a run of which none could be made: values that nothing foresaw."""
    result = suite.lost(
        key, error=f"the run has no record: {named_error(error)}", error_type="internal"
    )
    # The frames alone: an exception that it came from may be what cannot be put into words.
    frames = "".join(traceback.format_tb(error.__traceback__))
    return RolloutRecord(result, f"{result.error}\n\n{frames}")
