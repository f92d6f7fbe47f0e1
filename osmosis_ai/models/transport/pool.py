"""Connections to one endpoint: kept alive, bounded in number, through TLS and proxies.

Decides where to connect and what to reuse. Knows neither what is sent nor when to try again.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable

from ...secret import Secret
from .base_url import BaseURL
from .connections import CONNECT_TIMEOUT_S, Connections
from .http1 import Connection, Reply, WireError
from .proxy import Proxy
from .tls import tls_context

RESERVED_FILES = 64
"""Open files that are left to everything else."""

_NOT_CONNECTED = "not_connected"


class Pool(Connections[None, bytes, Connection]):
    """Connections to one endpoint, directly or through its proxy."""

    def __init__(
        self,
        address: BaseURL,
        *,
        api_key: Secret | None,
        size: int,
        max_body: int,
        proxy: Proxy | None = None,
    ) -> None:
        super().__init__(min(size, _affordable_connections()))
        self.address = address
        self.proxy = proxy
        self._head = _request_head(address, api_key, proxy)
        self._max_body = max_body
        self._tls = tls_context() if address.scheme == "https" else None

    def exchange(self, body: bytes, timeout_s: float) -> Awaitable[Reply]:
        """POST `body`, await the whole reply; raises WireError, at the deadline at the latest."""
        if self._closed:
            raise RuntimeError("the model is closed")
        return self._exchange(None, body, timeout_s)

    def _send(self, connection: Connection, body: bytes, deadline: float) -> Awaitable[Reply]:
        return connection.exchange(body, deadline)

    def _check(self, reply: Reply) -> None:
        if reply.status == 407 and self.proxy is not None:
            raise self._unreachable("the proxy asks for other credentials (407)")

    async def _connect(self, peer: None, deadline: float) -> Connection:
        left_s = deadline - self._loop.time()
        try:
            return await asyncio.wait_for(self._dial(), min(CONNECT_TIMEOUT_S, left_s))
        except asyncio.TimeoutError:
            if left_s < CONNECT_TIMEOUT_S:
                raise WireError("timeout", "deadline reached while connecting") from None
            raise self._unreachable(f"no connection within {CONNECT_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise self._explained(error) from None

    async def _dial(self) -> Connection:
        hop = self.proxy or self.address
        if self.proxy is not None and self._tls is not None:
            tunnel = await self._tunnel(self.proxy)
            _, connection = await self._loop.create_connection(
                self._new_connection, sock=tunnel, ssl=self._tls, server_hostname=self.address.host
            )
            return connection
        _, connection = await self._loop.create_connection(
            self._new_connection, hop.host, hop.port, ssl=self._tls, happy_eyeballs_delay=0.25
        )
        return connection

    def _new_connection(self) -> Connection:
        return Connection(
            self._head, max_body=self._max_body, register=self._open, alarms=self._alarms
        )

    async def _tunnel(self, proxy: Proxy) -> socket.socket:
        """A socket that the proxy has connected to the endpoint, ready for TLS."""
        found = await self._loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        tunnel = socket.socket(family, kind, protocol)
        try:
            tunnel.setblocking(False)
            await self._loop.sock_connect(tunnel, where)
            await self._loop.sock_sendall(tunnel, _connect_request(self.address, proxy))
            head = b""
            while b"\r\n\r\n" not in head and len(head) < 16384:
                # One byte at a time: what follows the head belongs to TLS.
                received = await self._loop.sock_recv(tunnel, 1)
                if not received:
                    break
                head += received
            status = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")[2]
            if not status.startswith("200"):
                raise self._unreachable(f"the proxy answered {status or 'nothing'!r}")
        except BaseException:
            tunnel.close()
            raise
        return tunnel

    def _explained(self, error: OSError) -> WireError:
        import ssl  # loaded with the first TLS connection at the latest

        if isinstance(error, ssl.SSLCertVerificationError):
            return WireError(
                "tls", f"{error.verify_message}; set SSL_CERT_FILE to the authority's certificate"
            )
        if isinstance(error, ssl.SSLError):
            why = (error.reason or str(error)).replace("_", " ").lower()
            cure = "; does the endpoint speak plain http?" if self._tls is not None else ""
            return WireError("tls", f"{why}{cure} Else set SSL_CERT_FILE" if cure else why)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return WireError("unreachable", "too many open files: lower -n or --batch-size")
        return self._unreachable(_plain(error))

    def _unreachable(self, detail: str) -> WireError:
        if self.proxy is not None:
            detail += f", through the proxy {self.proxy}; add the host to NO_PROXY to go direct"
        return WireError("unreachable", detail, reason=_NOT_CONNECTED)


def _request_head(address: BaseURL, api_key: Secret | None, proxy: Proxy | None) -> bytes:
    """Everything before the body but the value of Content-Length."""
    via_proxy = proxy is not None and address.scheme == "http"
    target = f"{address if via_proxy else address.path}/chat/completions"
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {address.netloc}",
        "User-Agent: pytest-osmosis",
        "Accept: application/json",
        "Accept-Encoding: gzip, deflate",
        "Content-Type: application/json",
    ]
    if api_key is not None:
        lines.append(f"Authorization: Bearer {api_key.reveal()}")
    if via_proxy and proxy is not None and proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization.reveal()}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")


def _connect_request(address: BaseURL, proxy: Proxy) -> bytes:
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"CONNECT {host}:{address.port} HTTP/1.1", f"Host: {host}:{address.port}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization.reveal()}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _affordable_connections() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 16
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED_FILES)


def _plain(error: OSError) -> str:
    """What the operating system meant, without addresses and error numbers."""
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved (DNS)"
    for code, words in (
        (errno.ECONNREFUSED, "connection refused"),
        (errno.EHOSTUNREACH, "no route to host"),
        (errno.ENETUNREACH, "network unreachable"),
        (errno.ECONNRESET, "connection reset"),
        (errno.ETIMEDOUT, "connecting timed out"),
    ):
        if error.errno == code or f"[Errno {code}]" in str(error):
            return words
    return error.strerror or type(error).__name__
