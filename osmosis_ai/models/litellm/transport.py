"""The HTTP transport of LiteLLM's requests.

LiteLLM's own transport follows redirects with the key, repeats requests uncounted, reads replies of
any size and hides what failed. This one sends once, reads within limits, and notes what happened
in the `Exchange` of the current call. Other requests of LiteLLM are left to its own transport.

Knows neither providers nor when to try again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx
from yarl import URL

from ...secret import Redactor, Secret
from ..base import ChatCompletion
from ..errors import UNSUPPORTED, CallFault
from ..failed_replies import fault_of_status
from ..faults import failure_in
from ..parsing import load_object, parse_completion
from ..retry import RetryPolicy
from ..transport.base_url import BaseURL
from ..transport.exchange import ClientClosed, Reply, TransportError
from ..transport.model_client import ModelClient
from ..transport.proxy import Proxy, find_proxy

_NOT_FORWARDED = ("content-length", "transfer-encoding", "accept-encoding")
_ALREADY_DECODED = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One call through LiteLLM: what it asks for, and what its last request brought."""

    client: ModelClient
    model: str
    """The provider's own name of the model."""
    policy: RetryPolicy
    host: str = ""
    """Where the last request went, printable."""
    replied: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first request: until then LiteLLM imports what the provider takes."""
    abandoned: bool = False
    """The caller has given up: no request is to be sent."""
    fault: CallFault | None = None
    """Why the last request brought no usable reply."""
    completion: ChatCompletion | None = None
    """The answer, where the reply has OpenAI's shape; others are left to LiteLLM's reading."""
    reply: dict[str, Any] | None = None
    """The JSON of the last successful reply."""


current: ContextVar[Exchange | None] = ContextVar("osmosis_litellm_exchange", default=None)


class Transport(httpx.AsyncBaseTransport):
    """Sends through the current call's session; without such a call, through `outside`."""

    def __init__(self, outside: httpx.AsyncBaseTransport | None) -> None:
        self._outside = outside

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The reply to one request; a CallFault ends LiteLLM's part in the call."""
        exchange = current.get()
        if exchange is None:
            return await self._others().handle_async_request(request)
        if exchange.abandoned:
            raise asyncio.CancelledError
        if _is_download(request):
            return _response(request, await _send(exchange.client, request))
        exchange.begun.set()
        exchange.fault = exchange.completion = exchange.reply = None
        exchange.host = request.url.netloc.decode("ascii", "replace")
        try:
            return await _exchange(exchange, request)
        except CallFault as fault:
            # Also tokens that LiteLLM was given for credentials: no other redactor knows them.
            fault.detail = Redactor(_credentials(request))(fault.detail)
            exchange.fault = fault
            raise

    async def aclose(self) -> None:
        """Close the other transport; the client belongs to the model."""
        if self._outside is not None:
            await self._outside.aclose()

    def _others(self) -> httpx.AsyncBaseTransport:
        if self._outside is None:
            self._outside = httpx.AsyncHTTPTransport()
        return self._outside


async def _exchange(exchange: Exchange, request: httpx.Request) -> httpx.Response:
    reply = await _send(exchange.client, request)
    exchange.replied = True
    if not 200 <= reply.status < 300:
        raise fault_of_status(
            reply.status, reply.headers, reply.body, model=exchange.model, policy=exchange.policy
        )
    document = exchange.reply = load_object(reply)
    if "choices" in document:
        exchange.completion = parse_completion(reply, model=exchange.model, policy=exchange.policy)
    elif failure := failure_in(document, model=exchange.model, policy=exchange.policy):
        raise failure
    return _response(request, reply)


def _is_download(request: httpx.Request) -> bool:
    """Return whether this fetches what a message names, such as an image: it takes no key along."""
    return request.method == "GET" and not any(_credentials(request))


def _credentials(request: httpx.Request) -> Iterator[Secret]:
    for name, value in request.headers.items():
        if any(word in name for word in ("auth", "cookie", "key", "token")):
            yield Secret(value.rpartition(" ")[2], name)


def _response(request: httpx.Request, reply: Reply) -> httpx.Response:
    headers = {
        name: value for name, value in reply.headers.items() if name.lower() not in _ALREADY_DECODED
    }
    return httpx.Response(reply.status, headers=headers, content=reply.body, request=request)


async def _send(client: ModelClient, request: httpx.Request) -> Reply:
    if request.url.userinfo:
        detail = (
            "the provider's address (api_base) holds a user name or a password: leave out "
            "everything up to '@'"
        )
        raise CallFault("bad_request", detail, reason=UNSUPPORTED)
    headers = {k: v for k, v in request.headers.items() if k not in _NOT_FORWARDED}
    headers["accept-encoding"] = "gzip, deflate"
    try:
        return await client.request(
            URL(str(request.url), encoded=True),
            await request.aread(),
            method=request.method,
            headers=headers,
            proxy=_proxy(request.url),
        )
    except ClientClosed:
        raise TransportError("connection", "the model is closed") from None


def _proxy(url: httpx.URL) -> Proxy | None:
    port = url.port or (443 if url.scheme == "https" else 80)
    address = BaseURL(scheme=url.scheme, host=url.host, port=port, path="")
    try:
        return find_proxy(address, os.environ)
    except ValueError as error:
        raise CallFault("unreachable", str(error)) from None
