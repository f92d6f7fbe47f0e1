"""The life of rollouts: admission, a place to run, a deadline, a result, and the end of it all.

Lives in one event loop, the server's; agents run in the workers' threads. Knows nothing of HTTP
but how to refuse.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from ...secret import Redactor
from ..tools import dump_tools
from .addresses import Trainer, TrainerRefused, TrainerRules, TrainerUnknown
from .app import AppOptions
from .callbacks import Callbacks
from .events import Counters, event
from .execution import Outcome, execute, failed
from .http import ByteBudget, Refused, busy
from .init_body import Init
from .journal import Journal
from .registration import register
from .rollouts import Delivery, Registry, Rollout
from .trainer_client import OsmosisLLMClient, TrainerChannel
from .trainer_wire import TrainerPool
from .workers import Job, Workers

TOOLS_TIMEOUT_S = 30.0
_TICK_S = 5.0


class RolloutService:
    """What one application does behind its routes."""

    def __init__(self, options: AppOptions) -> None:
        self._options = options
        self._agent = options.agent
        self.settings = options.settings
        self.counters = Counters()
        self.budget = ByteBudget(self.settings.max_held_bytes)
        self.registry = Registry(
            ttl_s=self.settings.record_ttl_s, max_kept_bytes=self.settings.max_held_bytes
        )
        self._rules = TrainerRules(
            self.settings.allowed_trainers, anywhere=self.settings.local
        )
        self._waiting: deque[tuple[Rollout, Trainer, list[Any]]] = deque()
        self._active = 0
        self._running: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[Any]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._draining = False
        self._cancelling = False
        self._idle = asyncio.Event()
        self._workers: Workers[TrainerPool]
        self._callbacks: Callbacks
        self._journal: Journal | None = None

    # Life cycle.

    async def start(self) -> None:
        """Start threads and background work, once; what the start-up hook raises propagates."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        settings = self.settings
        if settings.state_dir is not None:
            self._journal = await asyncio.to_thread(Journal, settings.state_dir)
        self._callbacks = Callbacks(settings, self._rules, self._note_delivery)
        self._workers = Workers(
            lambda: TrainerPool(settings.connections),
            lambda pool: pool.aclose(),
            most=settings.max_concurrent,
        )
        if self._options.on_startup is not None:
            await self._workers.call(self._options.on_startup)
        self._recover()
        self._in_background(self._tick())
        self._in_background(register(self._options))
        event("started", agent_loop=self._agent.name, max_concurrent=settings.max_concurrent)

    async def stop(self) -> None:
        """Refuse new rollouts, let the others end, cancel what is left, hand over every result."""
        self._draining = True
        if self._starting is None:
            return
        event("draining", active=self._active)
        await self._wait_until_idle(self.settings.drain_s)
        self._cancelling = True
        for task in tuple(self._running):
            task.cancel()
        self._end_waiting("the server was shut down before the rollout could start")
        await self._wait_until_idle(self.settings.cancel_grace_s + 1.0)
        for background in tuple(self._background):
            background.cancel()
        await self._callbacks.close(self.settings.flush_s)
        self._tell_lost()
        if self._options.on_shutdown is not None:
            await self._run_shutdown_hook()
        await self._workers.close()
        if self._journal is not None:
            await asyncio.to_thread(self._journal.close)
        event("stopped", rollouts=int(self.ended))

    async def _run_shutdown_hook(self) -> None:
        assert self._options.on_shutdown is not None
        hook = self._workers.call(self._options.on_shutdown)
        try:
            await asyncio.wait_for(hook, self.settings.drain_s)
        except Exception as error:  # noqa: BLE001  the user's code: said, and the stop goes on
            event("on_shutdown_failed", logging.ERROR, error=f"{type(error).__name__}: {error}")

    async def _wait_until_idle(self, seconds: float) -> None:
        if not self._active:
            return
        self._idle.clear()
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def _tell_lost(self) -> None:
        left = sum(rollout.undelivered for rollout in self.registry)
        if left:
            where = "lost" if self._journal is None else str(self.settings.state_dir)
            event("results_undelivered", logging.ERROR, results=left, kept=where)

    def _recover(self) -> None:
        for rollout in self._journal.load() if self._journal else ():
            assert rollout.outcome is not None
            self.registry.add(rollout)
            self.registry.note_end(rollout, rollout.outcome, rollout.delivery)
            event("recovered", rollout_id=rollout.rollout_id, delivery=rollout.delivery)
            if rollout.delivery == "pending":
                self._callbacks.deliver(rollout)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(min(_TICK_S, self.settings.record_ttl_s))
            for rollout in self.registry.old():
                self.registry.remove(rollout)
                if self._journal is not None and rollout.delivery != "expired":
                    await self._journal.remove(rollout)

    def _in_background(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # What is going on.

    @property
    def active(self) -> int:
        """Rollouts that run or wait."""
        return self._active

    @property
    def ended(self) -> float:
        """Rollouts that have ended since the start, well or not."""
        return self.counters.total("osmosis_rollouts_total")

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down."""
        return self._draining

    def gauges(self) -> dict[str, float]:
        """The present, for /metrics."""
        return {
            "osmosis_rollouts_active": self._active,
            "osmosis_rollouts_running": len(self._running),
            "osmosis_rollouts_queued": self._active - len(self._running),
            "osmosis_records": len(self.registry),
            "osmosis_results_undelivered": sum(r.undelivered for r in self.registry),
            "osmosis_results_bytes": self.registry.kept_bytes,
        }

    # Admission.

    async def init(self, init: Init) -> bytes:
        """The answer to an init; starts its rollout unless that was done before."""
        if found := await self._known(init):
            return found
        self._check_room()
        trainer = await self._located(init.request.server_url)
        if found := await self._known(init):
            return found
        self._check_room()
        rollout = Rollout(
            rollout_id=init.request.rollout_id,
            identity=init.identity,
            digest=init.digest,
            server_url=init.request.server_url,
            key=init.key,
            request=init.request,
            size=init.size,
        )
        self.budget.take(rollout.size)
        self.registry.add(rollout)
        self._active += 1
        # A task of its own: the rollout does not depend on the client staying on the line.
        rollout.admitted = self._in_background(self._admit(rollout, trainer))
        return await asyncio.shield(rollout.admitted)

    async def _known(self, init: Init) -> bytes | None:
        known = self.registry.find(init)
        if known is None:
            return None
        if known.delivery == "needs_key" and init.key is not None:
            known.key = init.key
            self.registry.note_delivery(known, "pending")
            self._callbacks.deliver(known)
        if known.admitted is not None:
            return await asyncio.shield(known.admitted)
        return known.answer

    def _check_room(self) -> None:
        if self._draining:
            told = "the server is shutting down"
            raise Refused(503, "draining", told, headers={"retry-after": "10"}, hang_up=True)
        if self._active >= 2 * self.settings.max_concurrent:
            told = f"{self._active} rollouts run or wait, which is all that this server takes"
            raise busy("busy", told, retry_after_s=self._expected_wait_s())
        if self.registry.undelivered_bytes > self.settings.max_held_bytes:
            told = "too many results wait for a trainer that does not take them"
            raise busy("backlog", told, retry_after_s=30.0)

    def _expected_wait_s(self) -> float:
        """About how long it takes until a place is free."""
        ended = self.ended
        total_s = self.counters.total("osmosis_rollout_seconds_total")
        return min(60.0, total_s / ended / self.settings.max_concurrent) if ended else 1.0

    async def _located(self, server_url: str) -> Trainer:
        try:
            return await self._rules.locate(server_url)
        except TrainerRefused as error:
            raise Refused(422, "trainer_refused", str(error)) from None
        except TrainerUnknown as error:
            headers = {"retry-after": "5"}
            raise Refused(503, "trainer_unknown", str(error), headers=headers) from None

    async def _admit(self, rollout: Rollout, trainer: Trainer) -> bytes:
        tools, schemas, problem = await self._tools(rollout)
        document = {"rollout_id": rollout.rollout_id, "tools": schemas}
        rollout.answer = json.dumps(document, separators=(",", ":")).encode("ascii")
        try:
            await self._save(rollout)
        except OSError as error:
            self._forget(rollout)
            told = f"the rollout cannot be noted in the state folder: {error.strerror}"
            raise Refused(503, "journal", told, headers={"retry-after": "30"}) from None
        event("accepted", rollout_id=rollout.rollout_id, trainer=trainer.origin)
        if problem is not None:
            await self._end(rollout, problem)
        elif self._cancelling:
            await self._end(rollout, failed(rollout.rollout_id, "the server was shut down"))
        else:
            self._waiting.append((rollout, trainer, tools))
            self._fill()
        return rollout.answer

    def _forget(self, rollout: Rollout) -> None:
        self.registry.remove(rollout)
        self.budget.give(rollout.size)
        self._leave()

    async def _tools(self, rollout: Rollout) -> tuple[list[Any], list[Any], Outcome | None]:
        """The agent's tools, as it gave them and for the wire; or how that failed."""
        request, agent = rollout.request, self._agent
        assert request is not None

        async def asked(pool: TrainerPool) -> tuple[list[Any], list[Any]]:
            tools: Any = agent.get_tools(request)
            return tools, dump_tools(tools, owner=f"{type(agent).__name__}.get_tools")

        job = self._workers.run(asked)
        try:
            tools, schemas = await asyncio.wait_for(job.result, TOOLS_TIMEOUT_S)
            return tools, schemas, None
        except asyncio.TimeoutError:
            why: BaseException | str = f"get_tools took more than {TOOLS_TIMEOUT_S:g} s"
        except BaseException as error:  # noqa: BLE001  the user's code: data
            why = error
        return [], [], failed(rollout.rollout_id, why, redact=self._redactor(rollout))

    # Running.

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.settings.max_concurrent:
            rollout, trainer, tools = self._waiting.popleft()
            task = asyncio.ensure_future(self._run(rollout, trainer, tools))
            self._running.add(task)
            task.add_done_callback(self._ran)

    def _ran(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._fill()

    async def _run(self, rollout: Rollout, trainer: Trainer, tools: list[Any]) -> None:
        rollout.state, rollout.started_at = "running", time.monotonic()
        redact = self._redactor(rollout)
        request = rollout.request
        assert request is not None
        settings, options = self.settings, self._options

        async def executed(pool: TrainerPool) -> Outcome:
            channel = TrainerChannel(
                pool, trainer, key=rollout.key, request_timeout_s=settings.request_timeout_s
            )
            llm = OsmosisLLMClient(request.server_url, request.rollout_id, channel=channel)
            try:
                return await execute(
                    self._agent,
                    request,
                    llm,
                    tools=tools,
                    debug_dir=options.debug_dir,
                    redact=redact,
                )
            finally:
                llm.close()

        outcome = await self._outcome(rollout, self._workers.run(executed))
        await self._end(rollout, outcome)

    async def _outcome(self, rollout: Rollout, job: Job[TrainerPool, Outcome]) -> Outcome:
        """What the job brings, within its time and until the server shuts down."""
        limit_s = self.settings.rollout_timeout_s
        why = f"the rollout took more than {limit_s:g} s"
        try:
            await asyncio.wait([job.result], timeout=limit_s)
        except asyncio.CancelledError:
            why = "the server was shut down during the rollout"
        if not job.result.done():
            job.cancel()
            await asyncio.wait([job.result], timeout=self.settings.cancel_grace_s)
            if not job.result.done():
                event("abandoned", logging.ERROR, rollout_id=rollout.rollout_id, reason=why)
            return failed(rollout.rollout_id, why)
        if job.result.cancelled():
            return failed(rollout.rollout_id, "CancelledError: the agent cancelled itself")
        return job.result.result()

    def _redactor(self, rollout: Rollout) -> Any:
        known = [secret for secret in (self._options.api_key, rollout.key) if secret is not None]
        found: list[Redactor] = []

        def redact(text: str) -> str:
            if not found:  # a redactor takes a while to build, and most rollouts need none
                found.append(Redactor(known))
            return found[0](text)

        return redact

    def _end_waiting(self, why: str) -> None:
        while self._waiting:
            rollout, _, _ = self._waiting.popleft()
            self._in_background(self._end(rollout, failed(rollout.rollout_id, why)))

    async def _end(self, rollout: Rollout, outcome: Outcome) -> None:
        now = time.monotonic()
        ran_s = now - rollout.started_at if rollout.started_at else 0.0
        self.registry.note_end(rollout, outcome, "pending")
        self.budget.give(rollout.size)
        self.counters.add("osmosis_rollouts_total", status=outcome.status)
        self.counters.add("osmosis_rollout_seconds_total", ran_s)
        fields: dict[str, object] = {
            "rollout_id": rollout.rollout_id,
            "status": outcome.status,
            "ran_s": ran_s,
            "waited_s": now - ran_s - rollout.accepted_at,
        }
        if outcome.error is not None:
            fields["error"] = outcome.error
        event("ended", **fields)  # type: ignore[arg-type]
        await self._save_calmly(rollout)
        self._callbacks.deliver(rollout)
        self._leave()

    def _leave(self) -> None:
        self._active -= 1
        if not self._active:
            self._idle.set()

    # Results.

    async def _note_delivery(self, rollout: Rollout, delivery: Delivery) -> None:
        self.registry.note_delivery(rollout, delivery)
        self.counters.add("osmosis_callbacks_total", outcome=delivery)
        await self._save_calmly(rollout)

    async def _save(self, rollout: Rollout) -> None:
        if self._journal is not None:
            await self._journal.save(rollout)

    async def _save_calmly(self, rollout: Rollout) -> None:
        try:
            await self._save(rollout)
        except OSError as error:
            event(
                "journal_failed", logging.ERROR, rollout_id=rollout.rollout_id, error=str(error)
            )
