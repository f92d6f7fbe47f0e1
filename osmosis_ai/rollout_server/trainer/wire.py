"""Connections to trainers: kept alive, bounded in number, to the addresses that were looked at.

Never resolves a name, follows a redirect or asks a proxy. Belongs to one event loop. Knows neither
what is sent nor when to try again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...alarms import Alarms
from ...models.transport.connections import CONNECT_TIMEOUT_S, Connections
from ...models.transport.http1 import MAX_BODY_BYTES, Connection, Reply, WireError
from ...models.transport.tls import tls_context
from ...secret import Secret
from .address_policy import Trainer

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request to a trainer."""

    path: str
    """Behind the trainer's own path; starts with a slash."""
    body: bytes
    key: Secret | None = None
    idempotency_key: str | None = None


class TrainerConnection(Connection):
    """A connection over which requests with different heads go."""

    __slots__ = ("trainer",)

    def __init__(self, trainer: Trainer, *, register: set[Connection], alarms: Alarms) -> None:
        super().__init__(b"", max_body=MAX_BODY_BYTES, register=register, alarms=alarms)
        self.trainer = trainer

    def post(self, post: Post, deadline: float) -> asyncio.Future[Reply]:
        """Send it; the reply, or a WireError at the loop's time `deadline`."""
        self._head = _head(self.trainer, post)
        return self.exchange(post.body, deadline)


class TrainerPool(Connections[Trainer, Post, TrainerConnection]):
    """Connections to whatever trainers there are."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._tls: ssl.SSLContext | None = None

    def post(self, trainer: Trainer, post: Post, timeout_s: float) -> Awaitable[Reply]:
        """Await the whole reply; raises WireError, at the deadline at the latest."""
        if self._closed:
            raise WireError("unreachable", "the server is shutting down")
        return self._exchange(trainer, post, timeout_s)

    def _send(self, connection: TrainerConnection, post: Post, deadline: float) -> Awaitable[Reply]:
        return connection.post(post, deadline)

    async def _connect(self, trainer: Trainer, deadline: float) -> TrainerConnection:
        failure: OSError | None = None
        for address in trainer.addresses:
            left_s = min(CONNECT_TIMEOUT_S, deadline - self._loop.time())
            try:
                return await asyncio.wait_for(self._dial(trainer, address), max(left_s, 0.001))
            except asyncio.TimeoutError:
                failure = OSError("connecting timed out")
            except OSError as error:
                failure = error
            except ValueError as error:  # SSL_CERT_FILE, or a host name that TLS cannot send
                raise WireError("tls", str(error)) from None
        raise _explained(failure or OSError("it has no address"))

    async def _dial(self, trainer: Trainer, address: str) -> TrainerConnection:
        secure = trainer.scheme == "https"
        if secure and self._tls is None:
            self._tls = tls_context()
        _, connection = await self._loop.create_connection(
            lambda: TrainerConnection(trainer, register=self._open, alarms=self._alarms),
            address,
            trainer.port,
            ssl=self._tls if secure else None,
            server_hostname=trainer.host if secure else None,
        )
        return connection


def _head(trainer: Trainer, post: Post) -> bytes:
    """Everything before the body but the value of Content-Length."""
    lines = [
        f"POST {trainer.path}{post.path} HTTP/1.1",
        f"Host: {trainer.netloc}",
        "User-Agent: pytest-osmosis",
        "Accept: application/json",
        "Accept-Encoding: gzip, deflate",
        "Content-Type: application/json",
    ]
    if post.idempotency_key is not None:
        lines.append(f"Idempotency-Key: {post.idempotency_key}")
    if post.key is not None:
        lines.append(f"Authorization: Bearer {post.key.reveal()}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")


def _explained(error: OSError) -> WireError:
    import ssl  # loaded with the first TLS connection at the latest

    if isinstance(error, ssl.SSLCertVerificationError):
        cure = "set SSL_CERT_FILE to the authority's certificate"
        return WireError("tls", f"{error.verify_message}; {cure}")
    if isinstance(error, ssl.SSLError):
        return WireError("tls", (error.reason or str(error)).replace("_", " ").lower())
    # asyncio's own text is about its call, not about what happened.
    return WireError("unreachable", os.strerror(error.errno) if error.errno else str(error))
