"""The life of rollouts: admission, execution, delivery and shutdown.

Lives in the server's event loop; agents run elsewhere. Knows nothing of HTTP but how to refuse.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from functools import partial

from ..agents.request import RolloutRequest
from ..error_text import named_error
from ..secret_variables import masking
from .admission import Admission
from .events import event
from .execution import RolloutOutcome, Runner, Tools
from .http.init_body import Init
from .http.messages import ByteBudget
from .rollouts import Delivery, Registry, ServedRollout
from .settings import AppOptions
from .trainer.address_policy import Trainer
from .trainer.client import COMPLETED_PATH
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
        self.admission = Admission(
            self.settings, places=self.settings.max_concurrent, caller="trainer"
        )
        self.ended = 0
        """Rollouts that have ended since the start, well or not."""
        self._starting: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []
        self._runner: Runner

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
        for work in (self._tick(), register(self._options)):
            self._background.append(asyncio.ensure_future(work))
            self._background[-1].add_done_callback(_report)
        name, places = self._options.agent.name, self.settings.max_concurrent
        event("started", agent_loop=name, max_concurrent=places)

    async def stop(self) -> None:
        """Refuse new rollouts, wait for the others, cancel the rest and deliver every result."""
        self.admission.draining = True
        if self._starting is None:
            return
        event("draining", active=len(self.admission.tasks))
        await self.admission.drain(self._runner.thread.cancel, grace_s=self.settings.cancel_grace_s)
        for task in self._background:
            task.cancel()
        await self._call_shutdown_hook()
        await self._release()
        event("stopped", rollouts=self.ended)

    async def _release(self) -> None:
        """End threads and connections; harmless when repeated."""
        await self.admission.deliveries.close(0.0)
        await self._runner.close()

    async def _call_shutdown_hook(self) -> None:
        if (hook := self._options.on_shutdown) is None:
            return
        try:
            await asyncio.wait_for(self._runner.thread.call(hook), self.settings.drain_s)
        except Exception as error:  # noqa: BLE001  the user's code: said, and the stop continues
            why = masking(self._options.api_key)(named_error(error))
            event("on_shutdown_failed", logging.ERROR, error=why)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(min(_TICK_S, self.settings.record_ttl_s))
            for rollout in self.registry.old():
                self.registry.remove(rollout)

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
            self.admission.check_capacity()
            trainer = await self.admission.locate(init.request.server_url, called="server_url")
            known = self.registry.find(init) or self._added(init, trainer)
        if init.key is not None:
            known.key = init.key  # for the result, where that has not been sent yet
        return await asyncio.shield(known.admitted)

    def _added(self, init: Init, trainer: Trainer) -> ServedRollout:
        self.admission.check_capacity()
        self.budget.take(init.size)
        rollout = self.registry.begin(init)
        # A separate task: the rollout continues when the client disconnects.
        task = self.admission.begin(self._run(rollout, init.request, trainer))
        task.add_done_callback(partial(_report, rollout=rollout))
        return rollout

    # Running.

    async def _run(self, rollout: ServedRollout, request: RolloutRequest, trainer: Trainer) -> None:
        tools = await self._runner.tools(request, rollout.key)
        schemas = tools.schemas if isinstance(tools, Tools) else []
        document = {"rollout_id": rollout.rollout_id, "tools": schemas}
        rollout.admitted.set_result(json.dumps(document, separators=(",", ":")).encode("ascii"))
        event("accepted", rollout_id=rollout.rollout_id, trainer=trainer.origin)
        if not isinstance(tools, Tools):
            self._end(rollout, tools)
            return
        async with self._runner.thread.places:
            rollout.state, rollout.started_at = "running", time.monotonic()
            outcome = await self._runner.run(request, rollout.key, trainer, tools)
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

    def _deliver(self, rollout: ServedRollout) -> None:
        async def send() -> None:
            assert rollout.outcome is not None
            trainer = await self.admission.rules.locate(rollout.server_url)
            body, name = rollout.outcome.body, rollout.rollout_id
            await self.admission.deliveries.post(
                trainer, COMPLETED_PATH, body, rollout.key, idempotency_key=name
            )

        def end(task: asyncio.Task[Delivery]) -> None:
            if not task.cancelled() and (delivery := task.result()) != "pending":
                self.registry.note_delivery(rollout, delivery)

        task = self.admission.deliveries.begin(send, rollout.rollout_id, rollout.kept_bytes)
        task.add_done_callback(end)


def _report(task: asyncio.Task[None], rollout: ServedRollout | None = None) -> None:
    """Log a fault of ours; a client that still waits for an answer gets none."""
    if rollout is not None:
        rollout.admitted.cancel()
    error = None if task.cancelled() else task.exception()
    if error is not None:
        event("internal_error", logging.ERROR, error=f"{type(error).__name__}: {error}")
