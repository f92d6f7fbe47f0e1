"""Delivery of each result to where it is awaited, once, with retries while that is away.

A round is the contract's three tries; rounds follow each other until the result is taken, is
refused with a 4xx, or is too old. Knows no agent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random

from ...agents.errors import OsmosisRolloutError, OsmosisValidationError
from ...secret import Secret
from ..events import event
from ..rollouts import Delivery
from ..settings import ServerSettings
from .address_policy import Trainer, TrainerRefused, TrainerUnknown
from .client import TrainerChannel, callback_retries
from .wire import TrainerClient

Send = Callable[[], Awaitable[object]]

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
_jitter = Random()


class Deliveries:
    """The results of one server that are not delivered yet."""

    def __init__(self, settings: ServerSettings) -> None:
        """To be made in the server's event loop."""
        self._settings = settings
        self._client: TrainerClient | None = None
        self._tasks: set[asyncio.Task[Delivery]] = set()
        self._last_round = asyncio.Event()
        self.held_bytes = 0
        """Bytes of all results that somebody still waits for."""

    def __len__(self) -> int:
        return len(self._tasks)

    async def post(
        self,
        trainer: Trainer,
        path: str,
        body: bytes,
        key: Secret | None,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Post a result; raise an OsmosisRolloutError."""
        self._client = self._client or TrainerClient(self._settings.connections)
        channel = TrainerChannel(
            self._client,
            trainer,
            key=key,
            request_timeout_s=self._settings.request_timeout_s,
        )
        policy = callback_retries(self._settings.client)
        await channel.ask(
            path, body, policy, lambda reply: reply.status, idempotency_key=idempotency_key
        )

    def begin(
        self,
        send: Send,
        rollout_id: str,
        size: int,
        *,
        after: asyncio.Task[Delivery] | None = None,
    ) -> asyncio.Task[Delivery]:
        """Deliver a result of so many bytes in the background: call `send` until it succeeds.

        `after` is the delivery that has to end before. The task returns "pending" where the server
        stopped and the result was not taken then either.
        """
        until = time.monotonic() + self._settings.record_ttl_s

        async def deliver() -> Delivery:
            if after is not None:
                await asyncio.wait([after])
            return await self._deliver(send, rollout_id, until)

        task = asyncio.ensure_future(deliver())
        self._tasks.add(task)
        self.held_bytes += size
        task.add_done_callback(partial(self._end, size))
        return task

    def _end(self, size: int, task: asyncio.Task[Delivery]) -> None:
        self._tasks.discard(task)
        self.held_bytes -= size

    async def close(self, timeout_s: float) -> None:
        """Try the rest once more immediately, for at most `timeout_s`; then give up."""
        self._last_round.set()
        tasks = tuple(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        if left := sum(not task.done() or task.result() == "pending" for task in tasks):
            event("results_undelivered", logging.ERROR, results=left)
        for task in tasks:
            task.cancel()
        if self._client is not None:
            await self._client.aclose()

    async def _deliver(self, send: Send, rollout_id: str, until: float) -> Delivery:
        rounds = 0
        while True:
            rounds += 1
            final = self._last_round.is_set()
            delivery, why = await _round(send)
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(rounds - 1, 10))
            pause_s *= _jitter.uniform(0.5, 1.0)
            if delivery == "pending" and time.monotonic() + pause_s >= until:
                delivery = "expired"
            level = logging.INFO if delivery == "delivered" else logging.WARNING
            name = "callback_failed" if delivery == "pending" else f"callback_{delivery}"
            event(name, level, rollout_id=rollout_id, rounds=rounds, error=why or None)
            if final or delivery != "pending":
                return delivery
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._last_round.wait(), pause_s)


async def _round(send: Send) -> tuple[Delivery, str]:
    try:
        await send()
    except (OsmosisValidationError, TrainerRefused) as error:
        return "refused", str(error)
    except (OsmosisRolloutError, TrainerUnknown) as error:
        return "pending", str(error)
    except Exception as error:  # noqa: BLE001  the boundary: no result is lost over a bug
        return "pending", f"{type(error).__name__}: {error}"
    return "delivered", ""
