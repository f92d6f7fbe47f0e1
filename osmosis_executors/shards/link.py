"""A shard's end of its connection to the driver: one thread, with an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any

from pytest_osmosis.distributed import messages

from .frames import ALIVE, BEAT_S, HELLO, NAME, ORDER, BadMessage, Invitation, frame, read_message

CONNECT_S = 30.0
_FULL_BYTES = 8 << 20
"""A thread that sends waits while so much is still to be sent."""
_DRAIN_S = 30.0


class NotInvited(Exception):
    """The driver is not there, or does not take the ticket."""


class DriverLink:
    """The connection to the driver; raises NotInvited where there is none to be had."""

    def __init__(self, invitation: Invitation) -> None:
        self._invitation = invitation
        self._receive: Callable[[str, Sequence[Any]], None] | None = None
        self._waiting: list[tuple[str, Sequence[Any]]] = []
        """Messages that have come before anything listens."""
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="osmosis-link", daemon=True)
        self._thread.start()
        opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        try:
            self.order: dict[str, Any] = opening.result(CONNECT_S)
            """What the driver has ordered."""
        except (OSError, BadMessage, concurrent.futures.TimeoutError) as error:
            raise NotInvited(f"{type(error).__name__}: {error}") from None
        asyncio.run_coroutine_threadsafe(self._attend(), self._loop)
        asyncio.run_coroutine_threadsafe(self._beat(), self._loop)

    def send(self, kind: str, *values: Any) -> None:
        """Send a message, once there is room for it; ignored where the driver is gone."""
        if not self._is_open:
            return
        message = frame(kind, *values)
        self._loop.call_soon_threadsafe(self._write, message)
        on_loop = threading.current_thread() is self._thread
        if self._unsent_bytes() > _FULL_BYTES and not on_loop:
            self.flush()

    def listen(self, receive: Callable[[str, Sequence[Any]], None]) -> None:
        """Call `heard` for every message, in one thread; CANCEL once the driver is gone."""
        self._loop.call_soon_threadsafe(self._listen, receive)

    def flush(self) -> None:
        """Return once everything is sent, or will never be."""
        draining = asyncio.run_coroutine_threadsafe(self._drained(), self._loop)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            draining.result(_DRAIN_S)

    def close(self) -> None:
        """Send what waits, and close."""
        self.flush()
        self._is_open = False
        closing = asyncio.run_coroutine_threadsafe(self._shut(), self._loop)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            closing.result(_DRAIN_S)

    def _unsent_bytes(self) -> int:
        """Return how much is still to be sent: nothing once the connection is lost."""
        try:
            return self._writer.transport.get_write_buffer_size()
        except AttributeError:  # Python 3.10, whose TLS transport has lost its connection
            return 0

    # ---- in the loop's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _open(self) -> dict[str, Any]:
        to = self._invitation
        self._reader, self._writer = await asyncio.open_connection(
            to.host,
            to.port,
            ssl=_context_for(to.certificate),
            server_hostname=NAME,
            limit=1 << 20,
        )
        self._writer.write(frame(HELLO, to.ticket))
        message = await read_message(self._reader)
        if message is None or message[0] != ORDER:
            raise BadMessage("the driver takes no such ticket")
        order: dict[str, Any] = message[1][0]
        return order

    async def _attend(self) -> None:
        try:
            while (message := await read_message(self._reader)) is not None:
                self._hand_on(*message)
        finally:
            self._is_open = False
            self._hand_on(messages.CANCEL, [])

    def _hand_on(self, kind: str, values: Sequence[Any]) -> None:
        if self._receive is None:
            self._waiting.append((kind, values))
        else:
            self._receive(kind, values)

    def _listen(self, receive: Callable[[str, Sequence[Any]], None]) -> None:
        self._receive = receive
        waiting, self._waiting = self._waiting, []
        for kind, values in waiting:
            receive(kind, values)

    async def _beat(self) -> None:
        while self._is_open:
            self._write(frame(ALIVE))
            await asyncio.sleep(BEAT_S)

    def _write(self, message: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(message)

    async def _drained(self) -> None:
        transport = self._writer.transport
        while self._unsent_bytes() and not transport.is_closing():
            with contextlib.suppress(OSError):
                await self._writer.drain()
            await asyncio.sleep(0.005)

    async def _shut(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), BEAT_S)


def _context_for(certificate: str) -> ssl.SSLContext:
    """Return the context of a client that speaks to the owner of this certificate alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=certificate)
    return context
