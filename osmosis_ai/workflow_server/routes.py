"""The paths of a server of workflows: who may ask, what is asked, and the answer as JSON.

The key is checked before a body is read. Knows no workflow.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from pydantic import ValidationError

from ..rollout_server.http.auth import Access
from ..rollout_server.http.messages import Body, ByteBudget, Refused, Reply, json_reply
from ..rollout_server.settings import Receive, Scope, Send, ServerSettings
from ..secret import Secret
from .backend import ExecutionBackend
from .protocol import RolloutInitRequest
from .rollouts import Rollouts

logger = logging.getLogger(__name__)


class Routes:
    """The paths: who may ask, what is asked, and the answer as JSON."""

    def __init__(
        self, backend: ExecutionBackend, settings: ServerSettings, key: Secret | None
    ) -> None:
        self.rollouts = Rollouts(backend, settings, key)
        self._backend = backend
        self._settings = settings
        self._access = Access(key)
        self._budget = ByteBudget(settings.max_held_bytes)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        try:
            reply = await self._reply(scope, receive)
        except Refused as refused:
            reply = refused.reply()
        except Exception:
            logger.exception("a request to %s failed", scope["path"])
            reply = Refused(500, "internal", "the server failed; its log says why").reply()
        await reply.send(send)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path == "/health" and method == "GET":
            return json_reply(200, self._backend.health())
        self._access.check(scope)
        if path == "/rollout" and method == "POST":
            return await self._start(scope, receive)
        if path == "/rollout/cancel" and method == "POST":
            return await self._cancel(scope, receive)
        if path.startswith("/rollout/") and path.endswith("/status") and method == "GET":
            rollout_id = path.removeprefix("/rollout/").removesuffix("/status")
            status = self.rollouts.status(rollout_id).value
            return json_reply(200, {"rollout_id": rollout_id, "status": status})
        raise Refused(404, "not_found", f"there is no {method} at this path", hang_up=True)

    async def _start(self, scope: Scope, receive: Receive) -> Reply:
        document = await self._document(scope, receive)
        try:
            request = RolloutInitRequest.model_validate(document)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False, include_context=False)
            details = [{"loc": list(each["loc"]), "msg": each["msg"]} for each in wrong]
            told = "the body is no rollout request"
            raise Refused(422, "invalid", told, details=details) from None
        await self.rollouts.start(request)
        return json_reply(202, {})

    async def _cancel(self, scope: Scope, receive: Receive) -> Reply:
        asked = await self._document(scope, receive)
        ids, prefix, everything = (asked.get(name) for name in ("ids", "prefix", "all"))
        given = [isinstance(ids, list), isinstance(prefix, str), everything is True]
        if sum(given) != 1:
            told = "pass exactly one of ids (a list), prefix (a text) and all (true)"
            raise Refused(422, "invalid", told)
        if isinstance(ids, list):
            told_each = self.rollouts.cancel(lambda name: name in ids)
        else:
            told_each = self.rollouts.cancel(lambda name: name.startswith(prefix or ""))
        return json_reply(200, {"dispositions": told_each})

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
