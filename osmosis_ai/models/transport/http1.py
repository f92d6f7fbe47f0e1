"""One HTTP/1.1 connection: a POST goes out, one whole reply comes back, within limits.

Built on asyncio's transports and llhttp (httptools), because a general client costs three times
the processor time of a call and 120 ms of start-up. Knows nothing of pools, retries or chat.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import NamedTuple, cast

import httptools

from ...alarms import Alarm, Alarms
from ..base import ErrorKind
from ..errors import CallFault

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Of the decoded body, counted while it comes in."""


class Reply(NamedTuple):
    """A whole HTTP reply; header names are lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class WireError(CallFault):
    """No whole reply."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str = "",
        *,
        summary: str = "",
        reason: str = "",
        silent: bool = False,
    ) -> None:
        retried = kind in ("unreachable", "timeout")
        super().__init__(kind, detail, summary=summary, reason=reason, retried=retried)
        self.silent = silent
        """Not a byte of the reply had come: on a reused connection the server had hung up."""


class Connection(asyncio.Protocol):
    """One connection; `exchange` is called again only after the reply before has come whole."""

    __slots__ = (
        "_alarm",
        "_alarms",
        "_chunks",
        "_decoder",
        "_fault",
        "_framed",
        "_head",
        "_head_bytes",
        "_header_bytes",
        "_headers",
        "_in_body",
        "_loop",
        "_max_body",
        "_parser",
        "_register",
        "_size",
        "_transport",
        "_waiter",
        "idle_since",
        "reusable",
    )

    def __init__(
        self, head: bytes, *, max_body: int, register: set[Connection], alarms: Alarms
    ) -> None:
        # The head holds the key: it stays an attribute, since tracebacks may show local variables.
        self._head = head
        self._max_body = max_body
        self._register = register
        self._alarms = alarms
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[Reply] | None = None
        self._alarm: Alarm | asyncio.TimerHandle | None = None
        self.reusable = False
        """The reply came whole and the server keeps the connection open."""
        self.idle_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self._size = 0
        self._head_bytes = 0
        self._header_bytes = 0
        self._in_body = False
        self._framed = True
        """The head says where the body ends; else it ends with the connection."""
        self._decoder: zlib._Decompress | None = None
        self._fault: WireError | None = None

    def exchange(self, body: bytes, deadline: float) -> asyncio.Future[Reply]:
        """Send a POST with `body`; the reply, or a WireError at the loop's time `deadline`."""
        self.reusable = False
        if self._transport.is_closing():
            raise self._lost()
        self._waiter = self._loop.create_future()
        self._alarm = self._alarms.at(deadline, self._expire)
        self._transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        return self._waiter

    def abort(self) -> None:
        """Close at once, without waiting for anything."""
        self.reusable = False
        if self._alarm is not None:
            self._alarm.cancel()
        self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._register.add(self)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; end the exchange when it cannot be read."""
        if self._waiter is None:
            self.abort()  # nothing was asked: whatever comes cannot be an answer to the next call
            return
        if not self._in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(WireError("protocol", _reason(error), summary="not an HTTP reply"))
            return
        if self._fault is not None:
            self._fail(self._fault)
        elif not self._in_body and self._head_bytes > MAX_HEAD_BYTES and self._waiter is not None:
            self._fail(_head_too_large())

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange with whatever has come."""
        self.reusable = False
        if self._waiter is not None:
            if self._in_body and not self._framed and exc is None:
                self._finish()  # HTTP/1.0 manner: the body ends where the connection does
            else:
                self._fail(self._lost())
        self._register.discard(self)

    # What llhttp calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header."""
        self._header_bytes += len(name) + len(value)
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Refuse early what cannot become an answer."""
        headers = self._headers
        if self._header_bytes > MAX_HEAD_BYTES:
            self._fault = _head_too_large()
            return
        self._in_body = True
        length = headers.get(b"content-length")
        self._framed = length is not None or b"transfer-encoding" in headers
        if length is not None and int(length) > self._max_body:
            self._fault = self._too_large(int(length))
        if b"text/event-stream" in headers.get(b"content-type", b"").lower():
            self._fault = WireError("protocol", summary="an answer streamed although not asked")
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding in (b"gzip", b"x-gzip"):
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif encoding == b"deflate":
            self._decoder = zlib.decompressobj()
        elif encoding not in (b"identity", b""):
            name = encoding.decode("latin-1")
            self._fault = WireError("protocol", name, summary="a body in an unknown encoding")

    def on_body(self, chunk: bytes) -> None:
        """Keep one piece, decoded, within the cap."""
        if self._fault is not None:
            return
        if self._decoder is not None:
            try:
                chunk = self._decoder.decompress(chunk, self._max_body - self._size + 1)
            except zlib.error:
                self._fault = WireError("protocol", summary="a broken compressed body")
                return
        self._size += len(chunk)
        if self._size > self._max_body:
            self._fault = self._too_large(self._size)
            return
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """End the exchange, unless the reply was only provisional."""
        if self._parser.get_status_code() < 200:
            self._reset()  # 100 Continue, 103 Early Hints: the reply proper is still to come
        elif self._fault is None and self._waiter is not None:
            self._finish()

    # The end of an exchange.

    def _finish(self) -> None:
        waiter, self._waiter = self._waiter, None
        if self._alarm is not None:
            self._alarm.cancel()
        if waiter is None or waiter.done():
            return
        decoder = self._decoder
        if decoder is not None and self._size and not decoder.eof:
            waiter.set_exception(WireError("protocol", summary="a compressed body cut short"))
            return
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        waiter.set_result(Reply(self._parser.get_status_code(), self._headers, body))
        # Unsent bytes: the server answered without reading the request, and will hang up.
        self.reusable = (
            self._parser.should_keep_alive()
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
        )
        self._reset()

    def _fail(self, error: WireError) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        self.abort()

    def _expire(self) -> None:
        where = "in the middle of the answer" if self._in_body else "without an answer"
        self._fail(WireError("timeout", f"deadline reached {where}"))

    def _lost(self) -> WireError:
        if self._in_body:
            return WireError("unreachable", "the connection was closed in the middle of the answer")
        if self._head_bytes:
            return WireError("unreachable", "the connection was closed in the middle of the head")
        return WireError("unreachable", "the connection was closed before the answer", silent=True)

    def _too_large(self, size: int) -> WireError:
        limit = self._max_body / 2**20
        return WireError("too_large", f"the answer has over {size / 2**20:.0f} of {limit:.0f} MiB")


def _head_too_large() -> WireError:
    detail = f"over {MAX_HEAD_BYTES // 1024} KiB of headers"
    return WireError("protocol", detail, summary="not an HTTP reply")


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
