"""Delivery of each result to its trainer, once, with retries while the trainer is away.

A round is the contract's three tries; rounds follow each other until the trainer has taken the
result, has refused it with a 4xx, or the result is too old. Knows no agent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from ...agents.errors import OsmosisRolloutError, OsmosisValidationError
from ..events import event
from ..rollouts import Delivery, ServedRollout
from ..settings import ServerSettings
from .address_policy import TrainerRefused, TrainerRules, TrainerUnknown
from .client import COMPLETED_PATH, TrainerChannel, callback_retries
from .wire import TrainerClient

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
_jitter = Random()


class Callbacks:
    """The results that are not delivered yet."""

    def __init__(
        self,
        settings: ServerSettings,
        rules: TrainerRules,
        note: Callable[[ServedRollout, Delivery], None],
        stopping: asyncio.Event,
    ) -> None:
        self._stopping = stopping
        self._settings = settings
        self._rules = rules
        self._note = note
        self._client = TrainerClient(settings.connections)
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_round = asyncio.Event()

    def deliver(self, rollout: ServedRollout) -> None:
        """Deliver the result of an ended rollout in the background."""
        task = asyncio.ensure_future(self._deliver(rollout))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, timeout_s: float) -> None:
        """Try the rest once more immediately, for at most `timeout_s`; then give up."""
        self._last_round.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in tuple(self._tasks):
            task.cancel()
        await self._client.aclose()

    async def _deliver(self, rollout: ServedRollout) -> None:
        key = rollout.key

        async def send() -> None:
            nonlocal key
            assert rollout.outcome is not None
            key = rollout.key
            trainer = await self._rules.locate(rollout.server_url)
            channel = TrainerChannel(
                self._client,
                trainer,
                key=key,
                request_timeout_s=self._settings.request_timeout_s,
                stopping=self._stopping,
            )
            await channel.ask(
                COMPLETED_PATH,
                rollout.outcome.body,
                callback_retries(self._settings.client),
                lambda reply: reply.status,
                idempotency_key=rollout.rollout_id,
            )

        until = rollout.ended_at + self._settings.record_ttl_s
        delivery = await deliver(send, rollout.rollout_id, until=until, last_round=self._last_round)
        if delivery == "refused" and rollout.key != key:  # a new one came meanwhile
            await self._deliver(rollout)
        elif delivery != "pending":
            self._note(rollout, delivery)


async def deliver(
    send: Callable[[], Awaitable[object]],
    rollout_id: str,
    *,
    until: float,
    last_round: asyncio.Event,
) -> Delivery:
    """Call `send` in rounds until the trainer has taken a result, or refused it, or it is too old.

    Returns "pending" when `last_round` was set and the trainer has not taken it then either.
    """
    rounds = 0
    while True:
        rounds += 1
        final = last_round.is_set()
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
            await asyncio.wait_for(last_round.wait(), pause_s)


async def _round(send: Callable[[], Awaitable[object]]) -> tuple[Delivery, str]:
    try:
        await send()
    except (OsmosisValidationError, TrainerRefused) as error:
        return "refused", str(error)
    except (OsmosisRolloutError, TrainerUnknown) as error:
        return "pending", str(error)
    except Exception as error:  # noqa: BLE001  the boundary: no result is lost over a bug
        return "pending", f"{type(error).__name__}: {error}"
    return "delivered", ""
