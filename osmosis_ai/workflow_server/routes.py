"""The paths of a server of workflows: who may ask, what is asked, and the answer as JSON.

The key is checked before a body is read. Knows no workflow.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ..rollout_server.http.auth import Access
from ..rollout_server.http.messages import (
    ByteBudget,
    Refused,
    Reply,
    json_reply,
    path_of,
    read_body,
)
from ..rollout_server.settings import Receive, Scope, ServerSettings
from ..secret import Secret
from .backend import LocalBackend
from .protocol import CancelRolloutsRequest, RolloutInitRequest
from .rollouts import Rollouts

M = TypeVar("M", bound=BaseModel)


class Routes:
    """The paths: who may ask, what is asked, and the answer as JSON."""

    def __init__(self, backend: LocalBackend, settings: ServerSettings, key: Secret | None) -> None:
        self.rollouts = Rollouts(backend, settings, key)
        self._settings = settings
        self._access = Access(key)
        self._budget = ByteBudget(settings.max_held_bytes)

    async def reply(self, scope: Scope, receive: Receive) -> Reply:
        """Return the reply to one request; raise Refused."""
        path = path_of(scope)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path == "/health" and method == "GET":
            return json_reply(200, self.rollouts.health())
        self._access.check(scope)
        if path == "/rollout" and method == "POST":
            return await self._start(scope, receive)
        if path == "/rollout/cancel" and method == "POST":
            return await self._cancel(scope, receive)
        if path.startswith("/rollout/") and path.endswith("/status") and method == "GET":
            rollout_id = path.removeprefix("/rollout/").removesuffix("/status")
            known = self.rollouts.status(rollout_id)
            return json_reply(200, known.model_dump(mode="json", exclude_none=True))
        raise Refused(404, "not_found", f"there is no {method} at this path", hang_up=True)

    async def _start(self, scope: Scope, receive: Receive) -> Reply:
        await self.rollouts.start(await self._read(RolloutInitRequest, scope, receive))
        return json_reply(202, {})

    async def _cancel(self, scope: Scope, receive: Receive) -> Reply:
        request = await self._read(CancelRolloutsRequest, scope, receive)
        if sum((request.ids is not None, request.prefix is not None, request.all)) != 1:
            message = "pass exactly one of ids (a list), prefix (a text) and all (true)"
            raise Refused(422, "invalid", message)
        return json_reply(200, self.rollouts.cancel(request).model_dump())

    async def _read(self, kind: type[M], scope: Scope, receive: Receive) -> M:
        parse = partial(_checked, kind)
        return await read_body(scope, receive, parse, budget=self._budget, settings=self._settings)


def _checked(kind: type[M], body: bytes) -> M:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(422, "invalid", "the body is not JSON") from None
    if not isinstance(document, dict):
        raise Refused(422, "invalid", "the body must be a JSON object")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        details = [{"loc": list(problem["loc"]), "msg": problem["msg"]} for problem in wrong]
        message = f"the body is no {kind.__name__}"
        raise Refused(422, "invalid", message, details=details) from None
