"""The driver's end of all connections: it lets in who has a ticket, and gives each its order once.

One thread, with an event loop; what shards send is handed on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_osmosis.distributed.remote.fleet import Listener, ShardOrder

from .certificate import server_context
from .frames import ALIVE, BEAT_S, HELLO, ORDER, BadMessage, frame, read_message
from .invitation import Invitation

HELLO_S = 20.0
"""How long a connection may take to show its ticket."""
_HELLO_BYTES = 4096
DRAIN_S = 2.0
"""After so long without a message, nothing more is expected of a process that has ended."""


@dataclass(slots=True, eq=False)
class _Guest:
    """A process that was let in."""

    shard: int
    writer: asyncio.StreamWriter
    heard: float
    left: asyncio.Event


class Hub:
    """Listens for shards until it is closed."""

    def __init__(
        self,
        host: str,
        order: ShardOrder,
        listener: Listener,
        *,
        on_silence: Callable[[int], None],
    ) -> None:
        """`order` is sent to each process. `on_silence` is called, once, of one that is silent."""
        self._host = host
        self._order = {
            "words": [*order.words],
            "environment": dict(order.environment),
            "root": str(order.root),
            "folder": order.folder,
            "data": [*order.data],
        }
        self._listener = listener
        self._silence_s = order.silence_s
        self._on_silence = on_silence
        self._tickets: dict[bytes, int] = {}
        self._guests: dict[int, _Guest] = {}
        self._context, self._certificate = server_context()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="osmosis-hub", daemon=True)
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        self.port = opening.result()

    def invite(self, shard: int) -> Invitation:
        """Return the invitation of a new process of a shard; earlier ones are void."""
        ticket = secrets.token_urlsafe(32)
        earlier = [digest for digest, number in self._tickets.items() if number == shard]
        for digest in earlier:
            self._tickets.pop(digest, None)
        self._tickets[_digest(ticket)] = shard
        return Invitation(self._host, self.port, self._certificate, ticket)

    def send(self, shard: int, kind: str, *values: Any) -> None:
        """Send a message; ignored where no process of the shard is there. From any thread."""
        message = frame(kind, *values)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._write, shard, message)

    def ended(self, shard: int, reason: str, *, suspect: bool) -> None:
        """Note that a process has ended, once all that it sent has arrived. From any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(
                lambda: self._loop.create_task(self._see_out(shard, reason, suspect=suspect))
            )

    def lost(self, reason: str) -> None:
        """Note that no process can be started any more. From any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._listener.lost, reason)

    def close(self) -> None:
        """Close all connections; idempotent."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ---- in the loop's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _open(self) -> int:
        self._server = await asyncio.start_server(
            self._welcome, self._host, 0, ssl=self._context, limit=1 << 20
        )
        self._watch = asyncio.create_task(self._watch_silence())
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _shut(self) -> None:
        self._watch.cancel()
        self._server.close()
        for guest in [*self._guests.values()]:
            guest.writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            shard = await asyncio.wait_for(self._shard_of(reader), HELLO_S)
            if shard is None:
                return
            guest = _Guest(shard, writer, time.monotonic(), asyncio.Event())
            self._guests[shard] = guest
            writer.write(frame(ORDER, self._order))
            try:
                await self._attend(guest, reader)
            finally:
                guest.left.set()
        except (asyncio.TimeoutError, BadMessage):
            return  # it has no ticket
        finally:
            writer.close()

    async def _shard_of(self, reader: asyncio.StreamReader) -> int | None:
        message = await read_message(reader, _HELLO_BYTES)
        if message is None or message[0] != HELLO or len(message[1]) != 1:
            return None
        return self._tickets.pop(_digest(str(message[1][0])), None)

    async def _attend(self, guest: _Guest, reader: asyncio.StreamReader) -> None:
        while (message := await read_message(reader)) is not None:
            guest.heard = time.monotonic()
            kind, values = message
            if kind != ALIVE and self._guests.get(guest.shard) is guest:
                self._listener.heard(guest.shard, kind, values)

    def _write(self, shard: int, message: bytes) -> None:
        guest = self._guests.get(shard)
        if guest is not None and not guest.writer.is_closing():  # asyncio fails where TLS has ended
            guest.writer.write(message)

    async def _see_out(self, shard: int, reason: str, *, suspect: bool) -> None:
        guest = self._guests.get(shard)
        if guest is not None:
            while not guest.left.is_set():
                heard = guest.heard
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(guest.left.wait(), DRAIN_S)
                if guest.heard == heard:
                    break
            self._guests.pop(shard, None)
            guest.writer.transport.abort()
        self._listener.gone(shard, reason, suspect=suspect)

    async def _watch_silence(self) -> None:
        told: set[int] = set()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.monotonic()
            for guest in [*self._guests.values()]:
                silent = now - guest.heard > self._silence_s
                if silent and not guest.left.is_set() and id(guest) not in told:
                    told.add(id(guest))
                    self._on_silence(guest.shard)


def _digest(ticket: str) -> bytes:
    """Return what stands for a ticket: how long looking it up takes says nothing of it."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).digest()
