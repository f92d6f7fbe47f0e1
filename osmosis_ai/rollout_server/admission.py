"""Which rollouts a server takes, and the end of all of them.

One `Admission` a server, of agent loops or of workflows. Knows nothing of what a rollout does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from .http.messages import Refused, busy
from .settings import ServerSettings
from .trainer.address_policy import Trainer, TrainerRefused, TrainerRules, TrainerUnknown
from .trainer.delivery import Deliveries

SHUTTING_DOWN = "the server is shutting down"


class Admission:
    """The rollouts that run or wait, and the results that are not delivered."""

    def __init__(self, settings: ServerSettings, *, places: int, caller: str) -> None:
        """To be made in the server's event loop.

        `places`: how many rollouts run at once; `caller`: who asks for them and takes results.
        """
        self._settings = settings
        self._places = places
        self._caller = caller
        self.rules = TrainerRules(settings.allowed_trainers, anywhere=settings.local)
        self.deliveries = Deliveries(settings)
        self.draining = False
        """Whether the server is shutting down."""
        self.tasks: set[asyncio.Task[None]] = set()
        """One for each rollout that runs or waits."""

    def check_capacity(self) -> None:
        """Raise Refused unless one more rollout may begin."""
        if self.draining:
            retry = {"retry-after": "10"}
            raise Refused(503, "draining", SHUTTING_DOWN, headers=retry, hang_up=True)
        if len(self.tasks) >= 2 * self._places:
            message = f"{len(self.tasks)} rollouts run or wait, which is all that this server takes"
            raise busy("busy", message, retry_after_s=5.0)
        if self.deliveries.held_bytes > self._settings.max_held_bytes:
            message = f"too many results wait for a {self._caller} that does not take them"
            raise busy("backlog", message, retry_after_s=30.0)

    async def locate(self, url: str, *, called: str) -> Trainer:
        """Return the address of a URL that a request has in the field `called`; raise Refused."""
        try:
            return await self.rules.locate(url, called=called)
        except TrainerRefused as error:
            raise Refused(422, f"{self._caller}_refused", str(error)) from None
        except TrainerUnknown as error:
            retry = {"retry-after": "5"}
            raise Refused(503, f"{self._caller}_unknown", str(error), headers=retry) from None

    def begin(self, rollout: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a rollout in the background."""
        task = asyncio.ensure_future(rollout)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def drain(self, cancel: Callable[[], None], *, grace_s: float) -> None:
        """Refuse new rollouts, wait for the others, `cancel` the rest, and deliver every result."""
        self.draining = True
        await self._wait_until_idle(self._settings.drain_s)
        cancel()
        await self._wait_until_idle(grace_s + 1.0)
        for task in self.tasks:
            task.cancel()
        await self.deliveries.close(self._settings.flush_s)

    async def _wait_until_idle(self, seconds: float) -> None:
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=seconds)
