"""The life of rollouts: admission, execution, delivery and shutdown.

Lives in the server's event loop; agents run elsewhere. Knows nothing of HTTP but how to refuse.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ..error_text import named_error
from ..secret_variables import masking
from .events import event
from .execution import RolloutOutcome, Runner, Tools
from .http.init_body import Init
from .http.messages import ByteBudget, Refused, busy
from .rollouts import Delivery, Registry, ServedRollout
from .settings import AppOptions
from .trainer.address_policy import Trainer, TrainerRefused, TrainerRules, TrainerUnknown
from .trainer.client import COMPLETED_PATH
from .trainer.delivery import Deliveries
from .trainer.registration import register

_TICK_S = 5.0


class RolloutService:
    """What one application does behind its routes."""

    def __init__(self, options: AppOptions) -> None:
        self._options = options
        self.settings = options.settings
        self.budget = ByteBudget(self.settings.max_held_bytes)
        self.registry = Registry(
            ttl_s=self.settings.record_ttl_s, max_kept_bytes=self.settings.max_held_bytes
        )
        self.draining = False
        """Whether the server is shutting down."""
        self.active = 0
        """Rollouts that run or wait."""
        self.ended = 0
        """Rollouts that have ended since the start, well or not."""
        self._rules = TrainerRules(self.settings.allowed_trainers, anywhere=self.settings.local)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._runner: Runner
        self.deliveries = Deliveries(self.settings)

    # Life cycle.

    async def start(self) -> None:
        """Start threads and background work, once; what the start-up hook raises propagates."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self._runner = Runner(self._options)
        if self._options.on_startup is not None:
            try:
                await self._runner.thread.call(self._options.on_startup)
            except BaseException:
                await self._release()
                raise
        self._in_background(self._tick())
        self._in_background(register(self._options))
        name, places = self._options.agent.name, self.settings.max_concurrent
        event("started", agent_loop=name, max_concurrent=places)

    async def stop(self) -> None:
        """Refuse new rollouts, wait for the others, cancel the rest and deliver every result."""
        self.draining = True
        if self._starting is None:
            return
        event("draining", active=self.active)
        await self._wait_until_idle(self.settings.drain_s)
        self._runner.thread.cancel()
        await self._wait_until_idle(self.settings.cancel_grace_s + 1.0)
        for task in tuple(self._tasks):
            task.cancel()
        await self.deliveries.close(self.settings.flush_s)
        await self._call_shutdown_hook()
        await self._release()
        event("stopped", rollouts=self.ended)

    async def _release(self) -> None:
        """End threads and connections; harmless when repeated."""
        await self.deliveries.close(0.0)
        await self._runner.close()

    async def _call_shutdown_hook(self) -> None:
        if (hook := self._options.on_shutdown) is None:
            return
        try:
            await asyncio.wait_for(self._runner.thread.call(hook), self.settings.drain_s)
        except Exception as error:  # noqa: BLE001  the user's code: said, and the stop continues
            why = masking(self._options.api_key)(named_error(error))
            event("on_shutdown_failed", logging.ERROR, error=why)

    async def _wait_until_idle(self, seconds: float) -> None:
        if self.active:
            self._idle.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(min(_TICK_S, self.settings.record_ttl_s))
            for rollout in self.registry.old():
                self.registry.remove(rollout)

    def _in_background(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._settled)
        return task

    def _settled(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Refused):
            event("internal_error", logging.ERROR, error=f"{type(error).__name__}: {error}")

    # What is going on.

    @property
    def started(self) -> bool:
        """Whether the start has at least begun."""
        return self._starting is not None

    # Admission.

    async def init(self, init: Init) -> bytes:
        """Return the answer to an init; starts its rollout unless that was done before."""
        known = self.registry.find(init)
        if known is None:
            self._check_capacity()
            trainer = await self._locate(init.request.server_url)
            known = self.registry.find(init) or self._added(init, trainer)
        if init.key is not None:
            known.key = init.key  # for the result, where that has not been sent yet
        return known.answer if known.admitted is None else await asyncio.shield(known.admitted)

    def _added(self, init: Init, trainer: Trainer) -> ServedRollout:
        self._check_capacity()
        self.budget.take(init.size)
        rollout = self.registry.begin(init)
        self.active += 1
        # A separate task: the rollout continues when the client disconnects.
        rollout.admitted = self._in_background(self._admit(rollout, trainer))
        return rollout

    def _check_capacity(self) -> None:
        if self.draining:
            message = "the server is shutting down"
            raise Refused(503, "draining", message, headers={"retry-after": "10"}, hang_up=True)
        if self.active >= 2 * self.settings.max_concurrent:
            message = f"{self.active} rollouts run or wait, which is all that this server takes"
            raise busy("busy", message, retry_after_s=5.0)
        if self.deliveries.held_bytes > self.settings.max_held_bytes:
            message = "too many results wait for a trainer that does not take them"
            raise busy("backlog", message, retry_after_s=30.0)

    async def _locate(self, server_url: str) -> Trainer:
        try:
            return await self._rules.locate(server_url)
        except TrainerRefused as error:
            raise Refused(422, "trainer_refused", str(error)) from None
        except TrainerUnknown as error:
            headers = {"retry-after": "5"}
            raise Refused(503, "trainer_unknown", str(error), headers=headers) from None

    async def _admit(self, rollout: ServedRollout, trainer: Trainer) -> bytes:
        assert rollout.request is not None
        tools = await self._runner.tools(rollout.request, rollout.key)
        schemas = tools.schemas if isinstance(tools, Tools) else []
        document = {"rollout_id": rollout.rollout_id, "tools": schemas}
        rollout.answer = json.dumps(document, separators=(",", ":")).encode("ascii")
        event("accepted", rollout_id=rollout.rollout_id, trainer=trainer.origin)
        rollout.admitted = None
        if isinstance(tools, Tools):
            self._in_background(self._run(rollout, trainer, tools))
        else:
            self._end(rollout, tools)
        return rollout.answer

    # Running.

    async def _run(self, rollout: ServedRollout, trainer: Trainer, tools: Tools) -> None:
        assert rollout.request is not None
        async with self._runner.thread.places:
            rollout.state, rollout.started_at = "running", time.monotonic()
            outcome = await self._runner.run(rollout.request, rollout.key, trainer, tools)
        self._end(rollout, outcome)

    def _end(self, rollout: ServedRollout, outcome: RolloutOutcome) -> None:
        self.registry.note_end(rollout, outcome)
        ran_s = rollout.ended_at - rollout.started_at if rollout.started_at else 0.0
        self.ended += 1
        event(
            "ended",
            rollout_id=rollout.rollout_id,
            status=outcome.status,
            ran_s=ran_s,
            waited_s=rollout.ended_at - ran_s - rollout.accepted_at,
            error=outcome.error,
        )
        self._deliver(rollout)
        self.budget.give(rollout.size)
        self.active -= 1
        if not self.active:
            self._idle.set()

    def _deliver(self, rollout: ServedRollout) -> None:
        async def send() -> None:
            assert rollout.outcome is not None
            trainer = await self._rules.locate(rollout.server_url)
            body, name = rollout.outcome.body, rollout.rollout_id
            await self.deliveries.post(
                trainer, COMPLETED_PATH, body, rollout.key, idempotency_key=name
            )

        def end(task: asyncio.Task[Delivery]) -> None:
            if not task.cancelled() and (delivery := task.result()) != "pending":
                self.registry.note_delivery(rollout, delivery)

        task = self.deliveries.begin(send, rollout.rollout_id, rollout.kept_bytes)
        task.add_done_callback(end)
