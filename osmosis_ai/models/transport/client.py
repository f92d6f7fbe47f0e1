"""HTTP over aiohttp: one request, one whole reply within limits, or a `TransportError`.

Follows no redirect, keeps no cookie and never sends a request again. Knows neither what is sent
nor when to try again. Import it where a model or a trainer is first called: aiohttp takes 150 ms.
"""

from __future__ import annotations

import asyncio
import io
import os
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from .exchange import EVENT_STREAM, MAX_BODY_BYTES, ClientClosed, Reply, TransportError
from .proxy import Proxy

if TYPE_CHECKING:
    import ssl

    from aiohttp.connector import Connection

    from ..passing import Passing

MAX_HEAD_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 15.0
IDLE_LIMIT_S = 30.0
"""Older idle connections are dropped: a router between may have forgotten them in silence."""
STALE_WITHIN_S = 1.0
"""A reused connection that ends so soon after the request had been dropped by the server before."""
RESERVED_FILES = 64
"""Open files that are left to everything else."""
_MAX_MEMBERS = 100
"""gzip members in one body; each further one copies the rest of the body."""
_GZIP_WBITS = zlib.MAX_WBITS | 16
_WARNED_BODY_BYTES = 1024 * 1024
"""aiohttp warns of larger bodies that are given as bytes."""


@dataclass(slots=True)
class _Link:
    """What is known of the connection of one exchange."""

    fresh: bool = False
    """A new connection was begun for it."""
    since: float | None = None
    """The loop's time since when the exchange has its connection."""
    replied: bool = False
    """The head of the reply has come."""


_link: ContextVar[_Link] = ContextVar("osmosis_link")
"""The link of the exchange that the current task makes."""


class _Connector(aiohttp.TCPConnector):
    """Notes in each exchange's `_Link` how it got its connection.

    The two methods are those that aiohttp documents of connectors. Its traces would say the same,
    and cost a fifth of a request, since they tell of every step of it.
    """

    async def connect(self, *given: Any, **named: Any) -> Connection:
        connection = await super().connect(*given, **named)
        _link.get().since = asyncio.get_running_loop().time()
        return connection

    async def _create_connection(self, *given: Any, **named: Any) -> Any:
        _link.get().fresh = True
        return await super()._create_connection(*given, **named)


class HTTPClient:
    """At most `size` exchanges at once in one event loop, over connections that are kept alive."""

    def __init__(
        self,
        *,
        size: int,
        max_body: int = MAX_BODY_BYTES,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        """To be called in the running event loop; `resolver` is asked for each new connection."""
        self._loop = asyncio.get_running_loop()
        self._max_body = max_body
        self._tls = tls
        self._timeout = _timeout(None)
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                limit=min(size, _affordable_connections()),
                keepalive_timeout=IDLE_LIMIT_S,
                resolver=resolver or aiohttp.ThreadedResolver(),
                use_dns_cache=resolver is None,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def request(
        self,
        url: URL,
        body: bytes,
        *,
        method: str = "POST",
        headers: Mapping[str, str],
        timeout_s: float | None = None,
        proxy: Proxy | None = None,
        passing: Passing | None = None,
    ) -> Reply:
        """Return the whole reply within `timeout_s`; raise TransportError or ClientClosed.

        A stream that is no error goes to `passing` besides, piece by piece.
        """
        if self._session.closed:
            raise ClientClosed
        if timeout_s != self._timeout.total:
            self._timeout = _timeout(timeout_s)
        link = _Link()
        _link.set(link)
        options: dict[str, Any] = {}
        response: aiohttp.ClientResponse | None = None
        reply: Reply | None = None
        try:
            if url.scheme == "https" or proxy is not None:
                options, headers = self._options(url, headers, proxy)
            response = await self._session.request(
                method,
                url,
                data=body if len(body) <= _WARNED_BODY_BYTES else io.BytesIO(body),
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                **options,
            )
            link.replied = True
            self._check_head(response, may_stream=headers.get("Accept") == EVENT_STREAM)
            received = await self._received(response, passing)
            reply = Reply(response.status, response.headers, received)
            return reply
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError) as error:
            self._explain(error, link, proxy)
        except asyncio.CancelledError:
            if self._session.closed:  # closing cancels the exchanges that wait for a connection
                raise ClientClosed from None
            raise
        finally:
            if reply is None and response is not None:
                response.close()

    async def aclose(self) -> None:
        """Close every connection; harmless when repeated."""
        await self._session.close()

    async def _received(self, response: aiohttp.ClientResponse, passing: Passing | None) -> bytes:
        """Return the whole body."""
        if passing is not None:
            passing = passing.started(response.status, response.headers)
        chunks: list[bytes] = []
        size = 0
        while chunk := await response.content.readany():
            size += len(chunk)
            if size > self._max_body:
                raise too_large(size, self._max_body)
            chunks.append(chunk)
            if passing is not None:
                await passing.take(chunk)
        received = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if coding := response.headers.get("Content-Encoding"):
            received = decode_body(received, coding, self._max_body)
        return received

    def _options(
        self, url: URL, headers: Mapping[str, str], proxy: Proxy | None
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Return what else a request takes, and its headers."""
        options: dict[str, Any] = {}
        if url.scheme == "https":
            options["ssl"] = self._tls = self._tls or _tls_context()
        if proxy is not None:
            options.update(_proxy_options(proxy, url))
            headers = {**headers, **options.pop("headers", {})}
        return options, headers

    def _check_head(self, response: aiohttp.ClientResponse, *, may_stream: bool) -> None:
        if sum(map(len, chain.from_iterable(response.raw_headers))) > MAX_HEAD_BYTES:
            detail = f"over {MAX_HEAD_BYTES // 1024} KiB of headers"
            raise TransportError("protocol", detail, summary="not an HTTP reply")
        kind = response.headers.get("Content-Type", "").lower()
        if EVENT_STREAM in kind and not may_stream:
            raise TransportError("protocol", summary="an answer streamed although not asked")
        if (response.content_length or 0) > self._max_body:
            raise too_large(response.content_length or 0, self._max_body)

    def _explain(self, error: Exception, link: _Link, proxy: Proxy | None) -> NoReturn:
        """Raise what `error` means; the error itself holds the request's headers: it ends here."""
        from .client_errors import is_disconnect, transport_error

        if self._session.closed:
            raise ClientClosed from None
        if isinstance(error, asyncio.TimeoutError) and not isinstance(
            error, aiohttp.ConnectionTimeoutError
        ):
            raise TransportError("timeout", f"deadline reached {_stage(link)}") from None
        fault = transport_error(error, replied=link.replied, proxy=proxy)
        if is_disconnect(error) and link.since is not None and not link.fresh and not link.replied:
            fault.stale = self._loop.time() - link.since < STALE_WITHIN_S
        raise fault from None


def _stage(link: _Link) -> str:
    if link.replied:
        return "in the middle of the answer"
    if link.since is not None:
        return "without an answer"
    return "while connecting" if link.fresh else "while waiting for a connection"


def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    # The threshold: aiohttp rounds longer timeouts up to whole seconds.
    return aiohttp.ClientTimeout(
        total=seconds, sock_connect=CONNECT_TIMEOUT_S, ceil_threshold=float("inf")
    )


def _tls_context() -> ssl.SSLContext:
    try:
        return tls_context()
    except ValueError as error:  # SSL_CERT_FILE
        raise TransportError("tls", str(error)) from None


def _proxy_options(proxy: Proxy, url: URL) -> dict[str, Any]:
    options: dict[str, Any] = {"proxy": URL.build(scheme="http", host=proxy.host, port=proxy.port)}
    if proxy.authorization is not None:
        credentials = {"Proxy-Authorization": proxy.authorization.reveal()}
        # aiohttp sends `proxy_headers` with CONNECT alone.
        options["proxy_headers" if url.scheme == "https" else "headers"] = credentials
    return options


def _affordable_connections() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 16
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED_FILES)


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, or those in SSL_CERT_FILE.

    Raise ValueError when SSL_CERT_FILE or SSL_CERT_DIR names nothing that can be used.
    """
    import ssl  # loaded with the first TLS connection at the latest

    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        where = os.environ.get(variable)
        if where and not os.path.exists(where):
            raise ValueError(f"{variable} names {where!r}, which does not exist")
    context = ssl.create_default_context()
    if context.cert_store_stats()["x509"]:
        return context
    if os.environ.get("SSL_CERT_FILE"):
        raise ValueError("SSL_CERT_FILE names a file that holds no certificate")
    directory = ssl.get_default_verify_paths().capath or ""
    if not os.path.isdir(directory) or not os.listdir(directory):
        import certifi  # slim containers have no certificates of their own

        context.load_verify_locations(certifi.where())
    return context


def decode_body(body: bytes, coding: str, limit: int) -> bytes:
    """Return `body` without its `Content-Encoding`; raise TransportError beyond `limit` bytes.

    aiohttp, which would decode it, takes a gzip body that was cut short for a whole one.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        return _decompressed(body, _GZIP_WBITS, limit)
    if coding == "deflate":
        # RFC 9110 means a zlib stream; some servers send the bare deflate stream inside it.
        is_zlib = body[0] & 0x0F == zlib.DEFLATED
        return _decompressed(body, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS, limit)
    raise TransportError("protocol", coding, summary="a body in an unknown encoding")


def too_large(size: int, limit: int) -> TransportError:
    """Return the fault of a body of `size` bytes or more."""
    detail = f"the answer has over {size / 2**20:.0f} of {limit / 2**20:.0f} MiB"
    return TransportError("too_large", detail)


def _decompressed(body: bytes, wbits: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(wbits)
        try:
            part = member.decompress(body, limit - size + 1)
        except zlib.error:
            raise _broken() from None
        size += len(part)
        if size > limit:
            raise too_large(size, limit)
        parts.append(part)
        if not member.eof:
            raise TransportError("protocol", summary="a compressed body cut short")
        body = member.unused_data
        if not body:
            return b"".join(parts)
    raise _broken()


def _broken() -> TransportError:
    return TransportError("protocol", summary="a broken compressed body")
