"""Connections to trainers: kept alive, bounded in number, to the addresses that were looked at.

Never resolves a name, follows a redirect or asks a proxy. Belongs to one event loop. Knows neither
what is sent nor when to try again.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.pool import CONNECT_TIMEOUT_S, IDLE_LIMIT_S
from ...models.tls import tls_context
from ...models.wire import MAX_BODY_BYTES, Connection, Reply, WireError
from ...secret import Secret
from .addresses import Trainer

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

    def __init__(self, trainer: Trainer, *, register: set[Connection]) -> None:
        super().__init__(b"", max_body=MAX_BODY_BYTES, register=register)
        self.trainer = trainer

    def post(self, post: Post, deadline: float) -> asyncio.Future[Reply]:
        """Send it; the reply, or a WireError at the loop's time `deadline`."""
        self._head = _head(self.trainer, post)
        return self.exchange(post.body, deadline)


class TrainerPool:
    """At most `size` requests at once, each over a connection of its own; others wait in turn."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Trainer, list[TrainerConnection]] = {}
        self._open: set[Connection] = set()
        self._busy = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    async def post(self, trainer: Trainer, post: Post, timeout_s: float) -> Reply:
        """The whole reply; raises WireError, at the deadline at the latest."""
        if self._closed:
            raise WireError("unreachable", "the server is shutting down")
        deadline = self._loop.time() + timeout_s
        if self._busy >= self._size:
            await self._turn(deadline)
        else:
            self._busy += 1
        try:
            reused = self._reuse(trainer)
            if reused is not None:
                try:
                    return await self._roundtrip(reused, post, deadline)
                except WireError as error:
                    if not error.silent:
                        raise
            # The trainer had dropped the idle connection: a fresh one decides.
            return await self._roundtrip(await self._connect(trainer, deadline), post, deadline)
        finally:
            self._pass_on()

    async def aclose(self) -> None:
        """Close every connection and wait until the loop has let go of them."""
        self._closed = True
        self._idle.clear()
        for connection in tuple(self._open):
            connection.abort()
        for _ in range(100):
            if not self._open:
                break
            await asyncio.sleep(0)

    async def _roundtrip(self, connection: TrainerConnection, post: Post, deadline: float) -> Reply:
        try:
            reply = await connection.post(post, deadline)
        except BaseException:
            connection.abort()
            raise
        if connection.reusable and not self._closed:
            connection.idle_since = self._loop.time()
            self._idle.setdefault(connection.trainer, []).append(connection)
        else:
            connection.abort()
        return reply

    def _reuse(self, trainer: Trainer) -> TrainerConnection | None:
        self._drop_old()
        idle = self._idle.get(trainer)
        while idle:
            connection = idle.pop()
            if connection.reusable:
                return connection
            connection.abort()
        return None

    def _drop_old(self) -> None:
        oldest = self._loop.time() - IDLE_LIMIT_S
        for trainer, idle in tuple(self._idle.items()):
            while idle and idle[0].idle_since < oldest:
                idle.pop(0).abort()
            if not idle:
                del self._idle[trainer]

    async def _turn(self, deadline: float) -> None:
        """Wait for a place; whoever leaves hands its place over, so `_busy` stays as it is."""
        place = self._loop.create_future()
        self._queue.append(place)
        try:
            await asyncio.wait_for(place, deadline - self._loop.time())
        except asyncio.TimeoutError:
            raise WireError("timeout", "deadline reached while waiting for a connection") from None
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._busy -= 1

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
            lambda: TrainerConnection(trainer, register=self._open),
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
