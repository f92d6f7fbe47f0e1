"""The bridge itself: keys and routes before one model.

It runs in its own thread, so that an agent that blocks its event loop on a call is still
answered. Knows no wire format but the names of its routes.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ..agents.client import ModelLLM
from ..agents.errors import OsmosisRolloutError
from ..http_server import Response, ThreadedServer
from ..models.base import ChatModel
from ..models.errors import ProviderError
from ..secret import ROLLOUT_KEY_PREFIX, Secret
from .openai import BadRequest, completion, models, provider_refused, read_call, refused, streamed
from .session import Account

if TYPE_CHECKING:
    from aiohttp import web

    from .openai import CompletionCall

MAX_BODY = 64 * 1024 * 1024
"""Longer than any history that a model reads, pictures included."""
_KEY_HEADERS = ("x-api-key", "api-key")
_CALLERS_FAULT = (BadRequest, OsmosisRolloutError, TypeError, ValueError)
_NO_ROLLOUT = (
    "this key is not that of a running rollout: use the api_key of get_rollout_context(), "
    "and only until the rollout ends"
)
_ROUTES = ("", "/chat/completions", "/embeddings", "/messages", "/responses")
_NO_ROUTE = (
    "there is no {} here: this endpoint has chat completions (POST .../chat/completions), "
    "OpenAI's responses (POST .../responses) and embeddings (POST .../embeddings), Anthropic's "
    "messages (POST .../messages) and GET .../models alone"
)


class Bridge:
    """Serves the model that `open_model` opens, until `close()`.

    `open_model` is called in the bridge's event loop; what it raises is raised here.
    """

    def __init__(self, open_model: Callable[[], ChatModel]) -> None:
        self._open_model = open_model
        self._accounts: dict[str, Account] = {}
        self._server = ThreadedServer(
            self._handle,
            name="osmosis-bridge",
            max_body=MAX_BODY,
            resources=self._opened(),
        )
        self.url = f"{self._server.url}/v1"
        """What OpenAI clients call `base_url`: `http://127.0.0.1:PORT/v1`."""

    def __repr__(self) -> str:
        return f"<Bridge to {self._model.name} at {self.url}>"

    def open_account(
        self, *, params: Mapping[str, Any] | None = None, record: bool = False
    ) -> Account:
        """Return an account for one rollout; `params` are the defaults of each call.

        With `record`, its `llm.calls` keeps the usage of each call.
        """
        key = Secret(ROLLOUT_KEY_PREFIX + secrets.token_urlsafe(32), "rollout key")
        llm = ModelLLM(self._model, params=params, record=record)
        account = Account(url=self.url, key=key, llm=llm, on_close=self._forget)
        self._accounts[key.reveal()] = account
        return account

    def close(self) -> None:
        """Stop serving, drop every client, close the model; harmless when repeated."""
        self._server.close()
        self._accounts.clear()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        self._model = self._open_model()
        try:
            yield
        finally:
            await self._model.aclose()

    def _forget(self, account: Account) -> None:
        self._accounts.pop(account.key.reveal(), None)
        if not self._server.closed:
            self._server.loop.call_soon_threadsafe(account.cancel)

    async def _handle(self, request: web.BaseRequest) -> Response | web.StreamResponse:
        path = _route(request.path)
        key = _key(request.headers)
        refusal = self._check(request, path, key)
        if refusal is not None:
            return refusal
        if path == "/models":
            return models(self._model.name)
        body = await request.read()
        account = self._accounts.get(key)
        if account is None:  # the rollout has ended since the head came
            return _unknown(path)
        if path == "/messages":
            return await self._message(account, body)
        if path in ("/responses", "/embeddings"):
            return await self._forwarded(account, body, path)
        return await self._completed(request, account, body)

    def _check(self, request: web.BaseRequest, path: str, key: str) -> Response | None:
        """Return the refusal of a request without a rollout's key, or to no route."""
        if key not in self._accounts:
            return _unknown(path)
        if path == "/models" and request.method == "GET":
            return None
        if path not in _ROUTES:
            return _refused(path, 404, _NO_ROUTE.format(request.path), code="unknown_url")
        if request.method != "POST":
            refusal_text = f"{request.path} takes POST only"
            return _refused(path, 405, refusal_text, code="method_not_allowed")
        return None

    async def _completed(
        self, request: web.BaseRequest, account: Account, body: bytes
    ) -> Response | web.StreamResponse:
        try:
            call = read_call(body)
            if call.stream:
                return await self._streamed(request, account, call)
            result = await account.ask(call)
        except ProviderError as error:
            return provider_refused(error)
        except _CALLERS_FAULT as error:
            return refused(400, str(error))
        return completion(result, model=self._model.name)

    async def _streamed(
        self, request: web.BaseRequest, account: Account, call: CompletionCall
    ) -> Response | web.StreamResponse:
        """Return the reply to a call that asks for a stream, written as its parts come."""
        from .streams import ChunkStream

        name = self._model.name
        stream = ChunkStream(request, model=name, with_usage=call.stream_usage)
        try:
            result = await account.ask(call, stream.give)
        except ProviderError as error:
            if stream.response is None:
                raise
            return await stream.broken(error)
        if stream.response is None:  # the model gives whole answers
            return streamed(result, model=name, with_usage=call.stream_usage)
        return await stream.end(result)

    async def _message(self, account: Account, body: bytes) -> Response:
        from .anthropic import (
            message,
            message_provider_refused,
            message_refused,
            read_message_call,
        )

        try:
            call = read_message_call(body)
            result = await account.forward(call)
        except ProviderError as error:
            return message_provider_refused(error)
        except _CALLERS_FAULT as error:
            return message_refused(400, str(error))
        return message(result, model=self._model.name, stream=call.stream)

    async def _forwarded(self, account: Account, body: bytes, path: str) -> Response:
        from .responses import read_embedding_call, read_response_call, replied

        try:
            read = read_response_call if path == "/responses" else read_embedding_call
            call = read(body)
            result = await account.forward(call)
        except ProviderError as error:
            return provider_refused(error)
        except _CALLERS_FAULT as error:
            return refused(400, str(error))
        assert result.document is not None
        return replied(result.document, stream=call.stream)


def _route(path: str) -> str:
    """Return the part of a path that names the route; clients repeat `/v1` or omit it."""
    path = path.rstrip("/")
    while path.startswith("/v1/") or path == "/v1":
        path = path.removeprefix("/v1")
    return path


def _unknown(path: str) -> Response:
    return _refused(path, 401, _NO_ROLLOUT, "authentication_error", "invalid_api_key")


def _refused(path: str, status: int, text: str, kind: str = "", code: str = "") -> Response:
    if path != "/messages":
        return refused(status, text, type=kind or "invalid_request_error", code=code)
    from .anthropic import message_refused

    return message_refused(status, text)


def _key(headers: Mapping[str, str]) -> str:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return next((headers[name] for name in _KEY_HEADERS if name in headers), "")
