"""The HTTP beneath LiteLLM: its requests go through a transport of ours.

LiteLLM's own transport follows redirects with the key in hand, repeats requests in secret, reads
replies of any size and leaves failures to guesswork. This one sends once, reads within limits, and
notes what really happened in the `Exchange` of the call that is being made. Requests that LiteLLM
makes for anybody else are left to its own transport.

Knows neither providers nor when to try again.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn

import aiohttp
import httpx

from ..base import ChatCompletion, clip
from ..errors import CallFault, fault_of_error_object, fault_of_status
from ..parsing import parse_completion
from ..retry import RetryPolicy
from ..transport.base_url import BaseURL
from ..transport.http1 import MAX_BODY_BYTES
from ..transport.proxy import find_proxy

CONNECT_TIMEOUT_S = 15.0

_NOT_FORWARDED = ("host", "content-length", "transfer-encoding", "accept-encoding")
_ALREADY_DECODED = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What one call to LiteLLM asked for, and what came back on the wire."""

    session: aiohttp.ClientSession
    model: str
    """The provider's own name of the model."""
    turn: int
    """Messages asked with: makes invented tool call ids unique."""
    policy: RetryPolicy
    host: str = ""
    """Where the last request went, printable."""
    replied: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first request: until then LiteLLM imports what the provider takes."""
    abandoned: bool = False
    """Nobody waits for an answer any more: no request is to be sent."""
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
        exchange.begun.set()
        exchange.fault = exchange.completion = exchange.reply = None
        exchange.host = request.url.netloc.decode("ascii", "replace")
        try:
            return await _exchanged(exchange, request)
        except CallFault as fault:
            exchange.fault = fault
            raise

    async def aclose(self) -> None:
        """Close what belongs to others; a session belongs to whoever opened it."""
        if self._outside is not None:
            await self._outside.aclose()

    def _others(self) -> httpx.AsyncBaseTransport:
        if self._outside is None:
            self._outside = httpx.AsyncHTTPTransport()
        return self._outside


def open_session() -> aiohttp.ClientSession:
    """A session for the running loop; every call is bounded by a deadline of its own."""
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
    )


async def _exchanged(exchange: Exchange, request: httpx.Request) -> httpx.Response:
    status, headers, body = await _sent(exchange.session, request)
    exchange.replied = True
    if not 200 <= status < 300:
        raise fault_of_status(status, headers, body, model=exchange.model, policy=exchange.policy)
    reply = exchange.reply = _json_object(status, headers, body)
    if "choices" in reply:
        exchange.completion = parse_completion(
            body,
            model=exchange.model,
            turn=exchange.turn,
            content_type=headers.get("content-type", ""),
            status=status,
            policy=exchange.policy,
        )
    elif reply.get("error"):
        raise fault_of_error_object(reply["error"], model=exchange.model, policy=exchange.policy)
    kept = {name: value for name, value in headers.items() if name not in _ALREADY_DECODED}
    return httpx.Response(status, headers=kept, content=body, request=request)


async def _sent(
    session: aiohttp.ClientSession, request: httpx.Request
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers with lower-case names, and the decoded body of the reply."""
    content = await request.aread()
    headers = {k: v for k, v in request.headers.items() if k not in _NOT_FORWARDED}
    headers["accept-encoding"] = "gzip, deflate"
    try:
        async with session.request(
            request.method,
            str(request.url),
            data=content or None,
            headers=headers,
            allow_redirects=False,
            **_proxy(request.url),
        ) as reply:
            found = {name.lower(): value for name, value in reply.headers.items()}
            return reply.status, found, await _body(reply)
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError) as error:
        raise _fault(error) from None


def _proxy(url: httpx.URL) -> dict[str, Any]:
    port = url.port or (443 if url.scheme == "https" else 80)
    address = BaseURL(scheme=url.scheme, host=url.host, port=port, path="")
    try:
        proxy = find_proxy(address, os.environ)
    except ValueError as error:
        raise CallFault("unreachable", str(error)) from None
    if proxy is None:
        return {}
    headers = {}
    if proxy.authorization is not None:
        headers["Proxy-Authorization"] = proxy.authorization.reveal()
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    return {"proxy": f"http://{host}:{proxy.port}", "proxy_headers": headers}


async def _body(reply: aiohttp.ClientResponse) -> bytes:
    if "text/event-stream" in reply.headers.get("content-type", "").lower():
        raise CallFault("protocol", "it streamed although not asked", status=reply.status)
    chunks: list[bytes] = []
    size = 0
    async for chunk in reply.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise CallFault("too_large", f"the answer has over {MAX_BODY_BYTES >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


def _json_object(status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        _refuse_body(status, headers, body)
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise CallFault("protocol", summary=f"a {status} whose JSON is a {kind}, no object")
    return found


def _refuse_body(status: int, headers: dict[str, str], body: bytes) -> NoReturn:
    if not body:
        raise CallFault("protocol", summary=f"a {status} with an empty body", retried=True)
    kind = headers.get("content-type", "no content type")
    # Redaction needs whole secrets: the rest is cut off only behind it.
    shown = body[:2000].decode("utf-8", "replace")
    summary = f"a {status} that is not JSON ({kind})"
    raise CallFault("protocol", shown, summary=summary, retried=True)


def _fault(error: Exception) -> CallFault:
    """What the client's own failures mean."""
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return CallFault("tls", f"{clip(str(error), 200)}; set SSL_CERT_FILE")
    if isinstance(error, aiohttp.ClientConnectorError):
        return CallFault("unreachable", _plain(error), reason="not_connected", retried=True)
    if isinstance(error, asyncio.TimeoutError):
        detail = f"no connection within {CONNECT_TIMEOUT_S:g} s"
        return CallFault("unreachable", detail, reason="not_connected", retried=True)
    if isinstance(error, aiohttp.ClientPayloadError) and "decode" in str(error):
        return CallFault("protocol", "the compressed body is broken", retried=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        detail = "the connection was closed in the middle of the answer"
        return CallFault("unreachable", detail, retried=True)
    if isinstance(error, aiohttp.ClientResponseError):
        return CallFault("protocol", f"not an HTTP reply ({clip(error.message, 100)})")
    if isinstance(error, (aiohttp.ClientConnectionError, OSError)):
        detail = "the connection was closed before the answer"
        return CallFault("unreachable", detail, retried=True)
    return CallFault("bad_request", f"the request cannot be sent ({type(error).__name__})")


def _plain(error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error.os_error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved (DNS)"
    return error.os_error.strerror or "no connection"
