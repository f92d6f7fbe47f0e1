"""The driver's end of all connections: it lets in who has a ticket, and gives each its order once.

One thread, with an event loop; what shards send is handed on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import secrets
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pytest_osmosis.distributed.shards.fleet import Listener, ShardOrder

from .frames import ALIVE, BEAT_S, HELLO, NAME, ORDER, BadMessage, Invitation, frame, read_message

HELLO_S = 20.0
"""How long a connection may take to show its ticket."""
_HELLO_BYTES = 4096
DRAIN_S = 2.0
"""After so long without a message, nothing more is expected of a process that has ended."""


@dataclass(slots=True, eq=False)
class _ShardConnection:
    """A process that was let in."""

    shard: int
    writer: asyncio.StreamWriter
    last_message: float
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
        self._connections: dict[int, _ShardConnection] = {}
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
            self._loop.call_soon_threadsafe(self._ended, shard, reason, suspect)

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
        for connection in [*self._connections.values()]:
            connection.writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            shard = await asyncio.wait_for(self._shard_of(reader), HELLO_S)
            if shard is None:
                return
            connection = _ShardConnection(shard, writer, time.monotonic(), asyncio.Event())
            self._connections[shard] = connection
            writer.write(frame(ORDER, self._order))
            try:
                await self._attend(connection, reader)
            finally:
                connection.left.set()
        except (asyncio.TimeoutError, BadMessage):
            return  # it has no ticket
        finally:
            writer.close()

    async def _shard_of(self, reader: asyncio.StreamReader) -> int | None:
        message = await read_message(reader, _HELLO_BYTES)
        if message is None or message[0] != HELLO or len(message[1]) != 1:
            return None
        return self._tickets.pop(_digest(str(message[1][0])), None)

    async def _attend(self, connection: _ShardConnection, reader: asyncio.StreamReader) -> None:
        while (message := await read_message(reader)) is not None:
            connection.last_message = time.monotonic()
            kind, values = message
            if kind != ALIVE and self._connections.get(connection.shard) is connection:
                self._listener.receive(connection.shard, kind, values)

    def _write(self, shard: int, message: bytes) -> None:
        connection = self._connections.get(shard)
        if connection is not None and not connection.writer.is_closing():  # else asyncio fails
            connection.writer.write(message)

    def _ended(self, shard: int, reason: str, suspect: bool) -> None:
        if self._server.is_serving():  # else the loop ends before the task does
            self._loop.create_task(self._see_out(shard, reason, suspect=suspect))

    async def _see_out(self, shard: int, reason: str, *, suspect: bool) -> None:
        connection = self._connections.get(shard)
        if connection is not None:
            while not connection.left.is_set():
                last_message = connection.last_message
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.left.wait(), DRAIN_S)
                if connection.last_message == last_message:
                    break
            self._connections.pop(shard, None)
            connection.writer.transport.abort()
        self._listener.gone(shard, reason, suspect=suspect)

    async def _watch_silence(self) -> None:
        reported: set[int] = set()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.monotonic()
            for connection in [*self._connections.values()]:
                silent = now - connection.last_message > self._silence_s
                if silent and not connection.left.is_set() and id(connection) not in reported:
                    reported.add(id(connection))
                    self._on_silence(connection.shard)


def _digest(ticket: str) -> bytes:
    """Return what stands for a ticket: how long looking it up takes says nothing of it."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).digest()


_VALID = datetime.timedelta(days=90)
_CLOCKS = datetime.timedelta(days=1)
"""How far the clocks of two machines may be apart."""


def server_context() -> tuple[ssl.SSLContext, str]:
    """Return the context of a server with a new key, and its certificate as PEM."""
    key, certificate = _new_pair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="osmosis-") as folder:  # of mode 0700
        path = Path(folder, "pair.pem")
        path.write_bytes(key + certificate)
        context.load_cert_chain(path)
    return context, certificate.decode("ascii")


def _new_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)
