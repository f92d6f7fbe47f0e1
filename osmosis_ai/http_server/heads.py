"""The head of a request, and a body in chunks, read from a buffer of bytes.

Raises `Malformed` for what is no HTTP/1.1 or longer than its limit. Knows no connections.
"""

from __future__ import annotations

from dataclasses import dataclass

from .messages import Request

MAX_CHUNK_HEAD = 1024


@dataclass(slots=True)
class Head:
    """A request whose head has arrived and whose body may not have."""

    request: Request
    length: int
    """Bytes of the body; unknown, 0, when it comes in chunks."""
    chunked: bool
    keep_alive: bool


class Malformed(Exception):
    """A request that ends its connection, with the status to say so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def parse_head(text: str) -> Head:
    """The head in `text`, which holds everything before the empty line."""
    first, *lines = text.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Malformed(400, "The request line is not HTTP/1.1.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed(400, "A header line has no colon.")
        headers[name.lower()] = value.strip()
    wish = headers.get("connection", "").lower()
    keep_alive = wish != "close" if parts[2] == "HTTP/1.1" else wish == "keep-alive"
    path = parts[1].partition("?")[0]
    chunked = _is_chunked(headers)
    return Head(Request(parts[0], path, headers), _length(headers), chunked, keep_alive)


def _is_chunked(headers: dict[str, str]) -> bool:
    coding = headers.get("transfer-encoding")
    if coding is None:
        return False
    if coding.lower() != "chunked" or "content-length" in headers:
        raise Malformed(400, "The Transfer-Encoding must be chunked, without a Content-Length.")
    return True


def _length(headers: dict[str, str]) -> int:
    digits = headers.get("content-length", "0")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise Malformed(400, "The Content-Length is not a number.")
    return int(digits)


class ChunkedBody:
    """A body that arrives in chunks."""

    def __init__(self, limit: int) -> None:
        self.body = bytearray()
        self._limit = limit
        self._left: int | None = None
        """Bytes of the chunk that has begun; None between chunks."""
        self._ended = False
        """The last chunk is over; trailers may follow."""

    def take(self, buffer: bytearray) -> bool:
        """Move what has arrived out of `buffer`; True once the body is whole."""
        while True:
            if self._left is not None:
                if len(buffer) < self._left + 2:
                    return False
                self._take_chunk(buffer, self._left)
                self._left = None
            end = buffer.find(b"\r\n")
            if end < 0 and len(buffer) <= MAX_CHUNK_HEAD:
                return False
            if not 0 <= end <= MAX_CHUNK_HEAD:
                raise Malformed(400, "A chunk's size line is too long.")
            line = bytes(buffer[:end])
            del buffer[: end + 2]
            if not self._ended:
                self._begin_chunk(line)
            elif not line:
                return True

    def _begin_chunk(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip()
        if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
            raise Malformed(400, "A chunk's size is not a hexadecimal number.")
        size = int(digits, 16)
        if len(self.body) + size > self._limit:
            raise Malformed(413, f"The request's body is longer than {self._limit} bytes.")
        self._ended = size == 0
        self._left = size or None

    def _take_chunk(self, buffer: bytearray, size: int) -> None:
        if buffer[size : size + 2] != b"\r\n":
            raise Malformed(400, "A chunk does not end where its size says.")
        self.body += buffer[:size]
        del buffer[: size + 2]
