"""Execution of an agent for one rollout, in a worker thread and within a time limit.

There always is an outcome: when the agent fails, hangs or ignores its cancellation, and when the
server shuts down. Admits nothing and keeps no record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ...agents.context import RolloutContext
from ...agents.request import RolloutRequest
from ...agents.tools import dump_tools
from ...secret import Secret
from ...secret_variables import masking
from ..events import event
from ..settings import AppOptions
from ..trainer.address_policy import Trainer
from ..trainer.client import OsmosisLLMClient, TrainerChannel
from ..trainer.haste import Haste
from ..trainer.wire import TrainerClient
from .run_rollout import Outcome, execute, failed, raised
from .worker_threads import Job, Workers

T = TypeVar("T")

TOOLS_TIMEOUT_S = 30.0
SHUT_DOWN = "the server was shut down before the rollout had ended"


@dataclass(frozen=True, slots=True)
class Tools:
    """What an agent's `get_tools` gave."""

    given: list[Any]
    schemas: list[dict[str, Any]]
    """The same for the wire."""


class Runner:
    """The agent of one server."""

    def __init__(self, options: AppOptions, haste: Haste) -> None:
        self._haste = haste
        self._agent = options.agent
        self._options = options
        self._settings = options.settings
        size = options.settings.connections
        self._workers: Workers[TrainerClient] = Workers(
            lambda: TrainerClient(size),
            lambda client: client.aclose(),
            most=options.settings.max_concurrent,
        )
        self._shutdown: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def call(self, hook: Callable[[], Any]) -> None:
        """Call a hook of the user's where the agent runs."""
        await self._workers.call(hook)

    def cancel_all(self) -> None:
        """End every rollout, those that run and those to come."""
        if not self._shutdown.done():
            self._shutdown.set_result(None)

    async def close(self) -> None:
        """End the threads."""
        await self._workers.close()

    async def tools(self, request: RolloutRequest, key: Secret | None) -> Tools | Outcome:
        """Return the agent's tools for this request; an outcome when there will be no rollout."""
        agent = self._agent

        async def asked(client: TrainerClient) -> Tools:
            given: Any = agent.get_tools(request)
            owner = f"{type(agent).__name__}.get_tools"
            return Tools(given, dump_tools(given, owner=owner))

        job = self._workers.run(asked)
        why = await self._ended(request.rollout_id, job, TOOLS_TIMEOUT_S, "get_tools")
        if why is not None:
            return failed(request.rollout_id, why)
        try:
            return job.result.result()
        except BaseException as error:  # noqa: BLE001  the agent's failure is reported to the trainer
            return raised(request.rollout_id, error, redact=masking(self._options.api_key, key))

    async def run(
        self, request: RolloutRequest, key: Secret | None, trainer: Trainer, tools: Tools
    ) -> Outcome:
        """Return how the rollout ended."""
        settings, rollout_id = self._settings, request.rollout_id
        begun: list[RolloutContext] = []

        async def executed(client: TrainerClient) -> Outcome:
            channel = TrainerChannel(
                client,
                trainer,
                key=key,
                request_timeout_s=settings.request_timeout_s,
                haste=self._haste,
            )
            llm = OsmosisLLMClient(
                request.server_url,
                rollout_id,
                settings=settings.client,
                channel=channel,
            )
            try:
                return await execute(
                    self._agent,
                    request,
                    llm,
                    tools=tools.given,
                    debug_dir=self._options.debug_dir,
                    redact=masking(self._options.api_key, key),
                    on_begin=begun.append,
                )
            finally:
                llm.end()

        job = self._workers.run(executed)
        why = await self._ended(rollout_id, job, settings.rollout_timeout_s, "the rollout")
        if why is not None:
            metrics = begun[0].metrics() if begun else None
            return failed(rollout_id, why, metrics=metrics)
        if job.result.cancelled():
            return failed(rollout_id, "CancelledError: the agent cancelled itself")
        return job.result.result()

    async def _ended(
        self, rollout_id: str, job: Job[TrainerClient, T], limit_s: float, what: str
    ) -> str | None:
        """Wait for the job; None when it ended by itself, else why it was ended."""
        waits: list[asyncio.Future[Any]] = [job.result, self._shutdown]
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if job.result.done():
            return None
        why = SHUT_DOWN if self._shutdown.done() else f"{what} took more than {limit_s:g} s"
        job.cancel()
        await asyncio.wait([job.result], timeout=self._settings.cancel_grace_s)
        if not job.result.done():
            reason = f"{what} did not end although it was cancelled"
            at = job.leave()
            event("abandoned", logging.ERROR, rollout_id=rollout_id, reason=reason, at=at)
        return why
