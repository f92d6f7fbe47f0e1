"""The paths of a server of workflows: who may ask, what is asked, and the answer as JSON.

The key is checked before a body is read. Knows no workflow.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..rollout_server.http.auth import Access
from ..rollout_server.http.messages import (
    Body,
    ByteBudget,
    Refused,
    Reply,
    answer,
    json_reply,
    path_of,
)
from ..rollout_server.settings import Receive, Scope, Send, ServerSettings
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

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        await answer(self._reply(scope, receive), scope["path"], send)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
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
        request = _checked(RolloutInitRequest, await self._document(scope, receive))
        await self.rollouts.start(request)
        return json_reply(202, {})

    async def _cancel(self, scope: Scope, receive: Receive) -> Reply:
        request = _checked(CancelRolloutsRequest, await self._document(scope, receive))
        if sum((request.ids is not None, request.prefix is not None, request.all)) != 1:
            message = "pass exactly one of ids (a list), prefix (a text) and all (true)"
            raise Refused(422, "invalid", message)
        return json_reply(200, self.rollouts.cancel(request).model_dump())

    async def _document(self, scope: Scope, receive: Receive) -> dict[str, Any]:
        limits = self._settings
        body = Body(self._budget, limit=limits.max_body_bytes, timeout_s=limits.body_timeout_s)
        try:
            found = json.loads(await body.read(scope["headers"], receive))
        except (ValueError, RecursionError):
            raise Refused(422, "invalid", "the body is not JSON") from None
        finally:
            self._budget.give(body.size)
        if not isinstance(found, dict):
            raise Refused(422, "invalid", "the body must be a JSON object")
        return found


def _checked(kind: type[M], document: dict[str, Any]) -> M:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        details = [{"loc": list(each["loc"]), "msg": each["msg"]} for each in wrong]
        message = f"the body is no {kind.__name__}"
        raise Refused(422, "invalid", message, details=details) from None
