"""HTTP/1.1 for one connection of a server: requests in, answers out, keep-alive.

httptools parses. Serves neither upgrades nor TLS. Knows neither chat nor keys: a `Handler` turns a
`Request` into a `Response`, at once or later; it is cancelled when the client hangs up first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import httptools

from .messages import Request, Response, encode, problem

MAX_HEAD = 64 * 1024
MAX_BODY = 8 * 1024 * 1024

LINGER_S = 5.0
"""How long a client that was refused may go on sending the body that is not read."""

Handler = Callable[[Request], "Response | Coroutine[Any, Any, Response]"]
Check = Callable[[Request], "Response | None"]
"""Refuses a request by its head alone, before its body is read."""


logger = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """Serves one client; `connections` holds every open one, so that a server can close them."""

    def __init__(
        self,
        handler: Handler,
        connections: set[Connection],
        *,
        check: Check,
        max_body: int,
    ) -> None:
        self._handler = handler
        self._check = check
        self._connections = connections
        self._max_body = max_body
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._head_bytes = 0
        """Bytes of a head that is not complete yet."""
        self._refusal: Response | None = None
        """Answer to a request that is not read; the last one of the connection."""
        self._lingering: asyncio.TimerHandle | None = None
        """Drops a client that goes on sending what is not read."""
        self._is_refused_unread = False
        self._waiting: deque[tuple[Request | Response, bool]] = deque()
        """Requests that are not answered yet, or refusals; whether the connection is kept alive."""
        self.answering: asyncio.Task[None] | None = None
        """The handler's work on an answer."""
        self.on_message_begin()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register a new client."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the answers that are due."""
        self._connections.discard(self)
        self._waiting.clear()
        if self._lingering is not None:
            self._lingering.cancel()
        if self.answering is not None:
            self.answering.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes, and answer the requests that are complete."""
        if self._refusal is not None:
            return
        self._in_next_head = False
        self._parse(data)
        if self._in_head and not self._in_next_head:
            self._head_bytes += len(data)
            self._check_head(self._head_bytes)
        if self._refusal is not None:
            self._waiting.append((self._refusal, False))
        self._serve()

    def abort(self) -> None:
        """Drop the client; `connection_lost` follows."""
        if self._transport is not None:
            self._transport.abort()

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Expect a head."""
        self._in_head = self._in_next_head = True
        self._head_bytes = 0
        self._size = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_size = 0

    def on_url(self, url: bytes) -> None:
        """Add a piece of the URL."""
        self._url += url
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header; those behind the body are ignored."""
        if self._in_head:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
            self._size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        """Check the head, and ask for the body where the client waits for that."""
        self._in_head = False
        self._check_head(self._size)
        if self._has_body() and self._refusal is None:
            self._refusal = self._check(self._request(b""))
            self._is_refused_unread = self._refusal is not None
        if self._refusal is not None:
            return
        expects = self._headers.get("expect", "").lower() == "100-continue"
        if expects and self._transport is not None and not self._waiting and self._is_listening():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, piece: bytes) -> None:
        """Keep a piece within the limit; beyond it, read on so that the client gets to listen."""
        if self._is_refused_unread:
            return
        self._body_size += len(piece)
        if self._body_size <= self._max_body:
            self._body.append(piece)
        elif "content-length" not in self._headers:
            self._refusal = self._refusal or self._too_large()

    def on_message_complete(self) -> None:
        """Queue the request."""
        if self._parser.should_upgrade():
            return  # without its body: `_parse` begins anew
        if self._refusal is None:
            if self._body_size > self._max_body:
                self._refusal = self._too_large()
            else:
                request = self._request(b"".join(self._body))
                self._waiting.append((request, self._parser.should_keep_alive()))
        self.on_message_begin()

    def _has_body(self) -> bool:
        announced = self._headers.get("content-length", "0").strip()
        return announced != "0" or "transfer-encoding" in self._headers

    def _request(self, body: bytes) -> Request:
        path = httptools.parse_url(self._url).path or b"/"
        method = self._parser.get_method().decode("latin-1")
        return Request(method, path.decode("latin-1"), self._headers, body)

    # Parsing and answering.

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self._parser.get_method() == b"CONNECT":
                    self._refusal = problem(400, "This server is no proxy.")
                    return
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as error:
                why = str(error).partition("\n")[0]
                self._refusal = self._refusal or problem(400, f"The request is not HTTP/1.1: {why}")
                return

    def _head_without_upgrade(self) -> bytes:
        """Return the head without the offer of another protocol, which Java's clients make."""
        lines = [b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url)]
        for name, value in self._headers.items():
            if name not in ("connection", "upgrade", "http2-settings"):
                lines.append(f"{name}: {value}".encode("latin-1"))
        return b"\r\n".join([*lines, b"", b""])

    def _check_head(self, size: int) -> None:
        if size > MAX_HEAD and self._refusal is None:
            self._refusal = problem(431, f"The request's head is longer than {MAX_HEAD} bytes.")

    def _too_large(self) -> Response:
        return problem(413, f"The request's body is longer than {self._max_body} bytes.")

    def _is_listening(self) -> bool:
        return self.answering is None and not (
            self._transport is None or self._transport.is_closing()
        )

    def _serve(self) -> None:
        while self._waiting and self._is_listening():
            asked, keep_alive = self._waiting.popleft()
            if isinstance(asked, Response):
                self._send(asked, keep_alive=keep_alive)
            else:
                self._handle(asked, keep_alive)
        if self._transport is not None and not self._transport.is_closing():
            # A client that sends ahead waits for its answers before it is read from again.
            if self._waiting:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _handle(self, request: Request, keep_alive: bool) -> None:
        answer = self._handler(request)
        if isinstance(answer, Response):
            self._send(answer, keep_alive=keep_alive)
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

    def _send(self, response: Response, *, keep_alive: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(encode(response, keep_alive=keep_alive))
        if response is self._refusal and self._is_refused_unread:
            self._linger(self._transport)
        elif not keep_alive:
            self._transport.close()

    def _linger(self, transport: asyncio.Transport) -> None:
        """End our side, and ignore what comes: closing now would take the answer from a client
        that is still sending.
        """
        transport.write_eof()
        self._lingering = asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
