"""The paths of a server: who may ask, what is asked, and the answer as JSON.

The key is checked before a body is read. Knows no agent and no trainer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ..events import event
from ..rollouts import ServedRollout
from ..service import RolloutService
from ..settings import AppOptions, Receive, Scope
from .auth import Access
from .init_body import read_init
from .messages import Refused, Reply, Turns, json_reply, path_of, read_body

Handler = Callable[[Scope, Receive], Awaitable[Reply]]

_UNKNOWN_PATH = Refused(404, "not_found", "there is nothing at this path", hang_up=True)
_ROLLOUT = "/rollout/"
INITS_A_PASS = 8


class Routes:
    """Answers the requests of one application."""

    def __init__(self, options: AppOptions) -> None:
        self.service = RolloutService(options)
        self._name = options.agent.name
        self._access = Access(options.api_key)
        self._turns = Turns(INITS_A_PASS)
        self._open: dict[str, tuple[str, Handler]] = {"/health": ("GET", self._health)}
        self._guarded: dict[str, tuple[str, Handler]] = {
            "/v1/rollout/init": ("POST", self._init),
            "/platform/health": ("GET", self._platform_health),
        }

    async def reply(self, scope: Scope, receive: Receive) -> Reply:
        """Return the reply to one request; raise Refused."""
        path = path_of(scope)
        if path not in self._open or not self._access.has_key:
            self._access.check(scope)
        method, handler = self._route(path)
        asked = "GET" if scope["method"] == "HEAD" else scope["method"]  # uvicorn drops the body
        if asked != method:
            raise Refused(
                405, "method", f"use {method} here", headers={"allow": method}, hang_up=True
            )
        return await handler(scope, receive)

    def _route(self, path: str) -> tuple[str, Handler]:
        if path.startswith(_ROLLOUT):
            return "GET", self._rollout
        route = self._open.get(path) or self._guarded.get(path)
        if route is None:
            raise _UNKNOWN_PATH
        return route

    async def _init(self, scope: Scope, receive: Receive) -> Reply:
        if not self.service.started:
            why = "it is not stopped in order, and loses rollouts in flight: run app.lifespan"
            event("started_by_a_request", logging.WARNING, why=why)
        await self.service.start()
        await self._turns.wait()
        service = self.service
        init = await read_body(
            scope, receive, read_init, budget=service.budget, settings=service.settings
        )
        return Reply(202, await self.service.init(init))

    async def _health(self, scope: Scope, receive: Receive) -> Reply:
        return json_reply(
            200,
            {
                "status": "draining" if self.service.admission.draining else "healthy",
                "agent_loop": self._name,
                "active_rollouts": len(self.service.admission.tasks),
                "completed_rollouts": self.service.ended,
                "undelivered_results": len(self.service.admission.deliveries),
            },
        )

    async def _platform_health(self, scope: Scope, receive: Receive) -> Reply:
        if not self._access.has_key:
            raise _UNKNOWN_PATH
        return await self._health(scope, receive)

    async def _rollout(self, scope: Scope, receive: Receive) -> Reply:
        rollout = self.service.registry.get(path_of(scope)[len(_ROLLOUT) :])
        if rollout is None:
            raise Refused(404, "not_found", "no rollout of that id is remembered")
        return _record(rollout)


def _record(rollout: ServedRollout) -> Reply:
    document = {
        "rollout_id": rollout.rollout_id,
        "state": rollout.state,
        "status": rollout.outcome.status if rollout.outcome else None,
        "delivery": rollout.delivery,
    }
    head = json_reply(200, document).body
    result = (rollout.outcome.body if rollout.outcome else b"") or b"null"
    return Reply(200, head[:-1] + b',"result":' + result + b"}")
