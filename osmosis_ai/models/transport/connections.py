"""Exchanges over connections that are kept alive: so many at once, the others wait in turn.

Decides what is reused. Knows neither where connections lead, nor what is sent, nor when to try
again.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Hashable
from typing import Generic, TypeVar

from ...alarms import Alarms
from .http1 import Connection, Reply, WireError

CONNECT_TIMEOUT_S = 15.0
IDLE_LIMIT_S = 30.0
"""Older idle connections are dropped: a router between may have forgotten them in silence."""
LOOK_S = 1.0
"""How often they are looked for."""

Peer = TypeVar("Peer", bound=Hashable)
Message = TypeVar("Message")
C = TypeVar("C", bound=Connection)


class Connections(Generic[Peer, Message, C]):
    """At most `size` exchanges at once, each over a connection of its own."""

    def __init__(self, size: int) -> None:
        """To be used within the running event loop."""
        self.size = size
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Peer, list[C]] = {}
        """By the time since when they are; the oldest comes first."""
        self._open: set[Connection] = set()
        self._alarms = Alarms(self._loop)
        self._looked_at = 0.0
        self._busy = 0
        self._closed = False
        self._queue: deque[asyncio.Future[None]] = deque()

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

    @abstractmethod
    async def _connect(self, peer: Peer, deadline: float) -> C:
        """A fresh connection that is registered in `_open`; raises WireError."""

    @abstractmethod
    def _send(self, connection: C, message: Message, deadline: float) -> Awaitable[Reply]:
        """The reply, or a WireError at the loop's time `deadline`."""

    def _check(self, reply: Reply) -> None:
        """Raise WireError when somebody between here and the peer has answered."""

    async def _exchange(self, peer: Peer, message: Message, timeout_s: float) -> Reply:
        """The whole reply; raises WireError, at the deadline at the latest."""
        deadline = self._loop.time() + timeout_s
        if self._busy >= self.size:
            await self._turn(deadline)
        else:
            self._busy += 1
        try:
            reused = self._reuse(peer)
            if reused is not None:
                try:
                    return await self._roundtrip(peer, reused, message, deadline)
                except WireError as error:
                    if not error.silent:
                        raise
            # The peer had dropped the idle connection: a fresh one decides, nothing is counted.
            fresh = await self._connect(peer, deadline)
            return await self._roundtrip(peer, fresh, message, deadline)
        finally:
            self._pass_on()

    async def _roundtrip(
        self, peer: Peer, connection: C, message: Message, deadline: float
    ) -> Reply:
        try:
            reply = await self._send(connection, message, deadline)
            self._check(reply)
        except BaseException:
            connection.abort()
            raise
        if connection.reusable and not self._closed:
            connection.idle_since = self._loop.time()
            self._idle.setdefault(peer, []).append(connection)
        else:
            connection.abort()
        return reply

    def _reuse(self, peer: Peer) -> C | None:
        now = self._loop.time()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._drop_old(now - IDLE_LIMIT_S)
        idle = self._idle.get(peer)
        while idle:
            connection = idle.pop()
            if connection.reusable and connection.idle_since >= now - IDLE_LIMIT_S:
                return connection
            connection.abort()
        return None

    def _drop_old(self, oldest: float) -> None:
        for peer, idle in tuple(self._idle.items()):
            while idle and idle[0].idle_since < oldest:
                idle.pop(0).abort()
            if not idle:
                del self._idle[peer]

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
