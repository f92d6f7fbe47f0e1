"""HTTP/1.1 for one connection: requests with a Content-Length in, JSON answers out, keep-alive.

What it does not do: chunked request bodies (411), upgrades, TLS. It knows neither chat nor
personas: a `Handler` turns a `Request` into a `Response`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

MAX_HEAD = 64 * 1024
MAX_BODY = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A status and a JSON body, sent after `delay_s`."""

    status: int
    body: Mapping[str, Any]
    delay_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Response]


@dataclass(slots=True)
class _Head:
    """A request whose head has arrived and whose body may not have."""

    request: Request
    length: int
    keep_alive: bool
    too_large: bool


class _Malformed(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def problem(status: int, message: str, **more: Any) -> Response:
    """A response with OpenAI's error object."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Response(status, {"error": {**error, **more}})


class Connection(asyncio.Protocol):
    """Serves one client; `connections` holds every open one, so that a server can close them."""

    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._head: _Head | None = None
        self._delayed: asyncio.TimerHandle | None = None

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
        except _Malformed as error:
            self._send(problem(error.status, str(error)), keep_alive=False)

    def _is_listening(self) -> bool:
        """Not while an answer is due, nor once the connection is on its way out."""
        return self._delayed is None and not (
            self._transport is None or self._transport.is_closing()
        )

    def _step(self) -> bool:
        """Move on by a head or a body; False when more has to arrive first."""
        if self._head is None:
            self._head = self._take_head()
            return self._head is not None
        return self._take_body(self._head)

    def _take_head(self) -> _Head | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end > MAX_HEAD or (end < 0 and len(self._buffer) > MAX_HEAD):
            raise _Malformed(431, f"The request's head is longer than {MAX_HEAD} bytes.")
        if end < 0:
            return None
        text = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 4]
        head = _parse_head(text)
        if head.request.headers.get("expect", "").lower() == "100-continue" and self._transport:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return head

    def _take_body(self, head: _Head) -> bool:
        if head.too_large:
            return self._discard(head)
        if len(self._buffer) < head.length:
            return False
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        self._head = None
        request = head.request
        response = self._handler(Request(request.method, request.path, request.headers, body))
        self._answer(response, keep_alive=head.keep_alive)
        return True

    def _discard(self, head: _Head) -> bool:
        """Read a body past its limit to its end and keep none of it: then the client listens."""
        head.length -= len(self._buffer)
        self._buffer.clear()
        if head.length > 0:
            return False
        raise _Malformed(413, f"The request's body is longer than {MAX_BODY} bytes.")

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
        self._transport.write(_encode(response, keep_alive))
        if not keep_alive:
            self._transport.close()


def _parse_head(text: str) -> _Head:
    first, *lines = text.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Malformed(400, "The request line is not HTTP/1.1.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise _Malformed(400, "A header line has no colon.")
        headers[name.lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise _Malformed(411, "A request needs a Content-Length; chunked bodies are not read.")
    digits = headers.get("content-length", "0")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise _Malformed(400, "The Content-Length is not a number.")
    wish = headers.get("connection", "").lower()
    keep_alive = wish != "close" if parts[2] == "HTTP/1.1" else wish == "keep-alive"
    path = parts[1].partition("?")[0]
    length = int(digits)
    return _Head(Request(parts[0], path, headers), length, keep_alive, length > MAX_BODY)


def _encode(response: Response, keep_alive: bool) -> bytes:
    body = json.dumps(response.body, ensure_ascii=True).encode("ascii")
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body
