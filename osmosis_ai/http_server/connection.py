"""HTTP/1.1 for one connection: requests in, answers out, keep-alive.

What it does not do: upgrades and TLS. It knows neither chat nor keys: a `Handler` turns a `Request`
into a `Response`, at once or in its own time; when the client hangs up first, it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from .heads import ChunkedBody, Head, Malformed, parse_head
from .messages import Request, Response, encode, problem

MAX_HEAD = 64 * 1024
MAX_BODY = 8 * 1024 * 1024

Handler = Callable[[Request], "Response | Coroutine[Any, Any, Response]"]

logger = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """Serves one client; `connections` holds every open one, so that a server can close them."""

    def __init__(
        self, handler: Handler, connections: set[Connection], *, max_body: int = MAX_BODY
    ) -> None:
        self._handler = handler
        self._connections = connections
        self._max_body = max_body
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._head: Head | None = None
        self._chunks: ChunkedBody | None = None
        self._discarded = 0
        self._delayed: asyncio.TimerHandle | None = None
        self.answering: asyncio.Task[None] | None = None
        """An answer that a handler is taking its time over."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio with a new client."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio once, whoever hung up; an answer that is due is not sent."""
        self._connections.discard(self)
        if self._delayed is not None:
            self._delayed.cancel()
        if self.answering is not None:
            self.answering.cancel()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with the next bytes, wherever they were cut."""
        self._buffer += data
        self._serve()

    def abort(self) -> None:
        """Drop the client; `connection_lost` follows."""
        if self._transport is not None:
            self._transport.abort()

    def _serve(self) -> None:
        try:
            while self._is_listening() and self._step():
                pass
        except Malformed as error:
            self._send(problem(error.status, str(error)), keep_alive=False)

    def _is_listening(self) -> bool:
        """Not while an answer is due, nor once the connection is on its way out."""
        return (
            self._delayed is None
            and self.answering is None
            and not (self._transport is None or self._transport.is_closing())
        )

    def _step(self) -> bool:
        """Move on by a head or a body; False when more has to arrive first."""
        if self._head is None:
            self._head = self._take_head()
            return self._head is not None
        body = self._take_chunks() if self._head.chunked else self._take_body(self._head)
        if body is None:
            return False
        head, self._head = self._head, None
        request = head.request
        self._handle(Request(request.method, request.path, request.headers, body), head.keep_alive)
        return True

    def _take_head(self) -> Head | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end > MAX_HEAD or (end < 0 and len(self._buffer) > MAX_HEAD):
            raise Malformed(431, f"The request's head is longer than {MAX_HEAD} bytes.")
        if end < 0:
            return None
        text = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 4]
        head = parse_head(text)
        if head.request.headers.get("expect", "").lower() == "100-continue" and self._transport:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return head

    def _take_body(self, head: Head) -> bytes | None:
        if head.length > self._max_body:
            self._discard(head)
            return None
        if len(self._buffer) < head.length:
            return None
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        return body

    def _take_chunks(self) -> bytes | None:
        if self._chunks is None:
            self._chunks = ChunkedBody(self._max_body)
        if not self._chunks.take(self._buffer):
            return None
        body, self._chunks = bytes(self._chunks.body), None
        return body

    def _discard(self, head: Head) -> None:
        """Read a body past its limit to its end and keep none of it: then the client listens."""
        taken = min(len(self._buffer), head.length)
        del self._buffer[:taken]
        self._discarded += taken
        if self._discarded >= head.length:
            raise Malformed(413, f"The request's body is longer than {self._max_body} bytes.")

    def _handle(self, request: Request, keep_alive: bool) -> None:
        answer = self._handler(request)
        if isinstance(answer, Response):
            self._answer(answer, keep_alive=keep_alive)
        else:
            loop = asyncio.get_running_loop()
            self.answering = loop.create_task(self._answer_later(answer, keep_alive))

    async def _answer_later(self, answer: Coroutine[Any, Any, Response], keep_alive: bool) -> None:
        try:
            response = await answer
        except asyncio.CancelledError:
            self.abort()
            raise
        except Exception:  # a handler's mistake must not leave its client waiting
            logger.exception("a request could not be answered")
            response = problem(500, "The request could not be answered.", type="server_error")
        self.answering = None
        self._send(response, keep_alive=keep_alive)
        self._serve()

    def _answer(self, response: Response, *, keep_alive: bool) -> None:
        if response.delay_s <= 0:
            self._send(response, keep_alive=keep_alive)
            return
        loop = asyncio.get_running_loop()
        self._delayed = loop.call_later(response.delay_s, self._send_late, response, keep_alive)

    def _send_late(self, response: Response, keep_alive: bool) -> None:
        self._delayed = None
        self._send(response, keep_alive=keep_alive)
        self._serve()

    def _send(self, response: Response, *, keep_alive: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(encode(response, keep_alive=keep_alive))
        if not keep_alive:
            self._transport.close()
