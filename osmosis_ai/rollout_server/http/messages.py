"""Requests and replies over ASGI: a body within its limits, a reply as JSON, a refusal as one.

Knows no path and no rollout. One exception:

    Exception
    └── Refused      the request gets this status, sentence and code, and nothing else happens
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..events import event
from ..settings import Receive, Scope, Send, ServerSettings

T = TypeVar("T")

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, send: Send) -> None:
        """Put it on the wire."""
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(self.body)),
            *(
                (name.encode("ascii"), value.encode("ascii"))
                for name, value in self.headers.items()
            ),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def json_reply(status: int, document: Any) -> Reply:
    """Return a reply with a JSON document."""
    return Reply(status, _encode(document).encode("ascii"))


class Refused(Exception):
    """The request is not served; `code` is for programs, `message` for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        details: Any = None,
        hang_up: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        self.details = details
        if hang_up:  # the rest of the body is not wanted
            self.headers["connection"] = "close"

    def reply(self) -> Reply:
        """Return the refusal on the wire."""
        document = {"error": str(self), "code": self.code}
        if self.details is not None:
            document["details"] = self.details
        body = _encode(document).encode("ascii")
        return Reply(self.status, body, headers=self.headers)


async def answer(work: Awaitable[Reply], path: str, send: Send) -> None:
    """Send what a handler returns, whatever happens in it."""
    try:
        reply = await work
    except Refused as refused:
        reply = refused.reply()
    except Exception as error:  # noqa: BLE001  the boundary: a request gets an answer
        event("request_failed", logging.ERROR, path=path, error=f"{type(error).__name__}: {error}")
        message = "the server failed; its log says why"
        reply = Refused(500, "internal", message, hang_up=True).reply()
    await reply.send(send)
    event("request", logging.DEBUG, path=path, status=reply.status)


def path_of(scope: Mapping[str, Any]) -> str:
    """Return the path below the place where another application has mounted this one."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "").rstrip("/"))


def busy(code: str, message: str, *, retry_after_s: float) -> Refused:
    """429: the same request may be sent again after `retry_after_s`."""
    seconds = str(max(1, round(retry_after_s)))
    return Refused(429, code, message, headers={"retry-after": seconds})


class ByteBudget:
    """How many bytes of bodies may be held at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def take(self, size: int) -> None:
        """Hold `size` more bytes, or refuse the request that they belong to."""
        if self.held + size > self.limit:
            raise Refused(
                429,
                "busy",
                "the server holds as many requests as it has memory for",
                headers={"retry-after": "5"},
                hang_up=True,
            )
        self.held += size

    def give(self, size: int) -> None:
        """Release `size` bytes."""
        self.held -= size


class Turns:
    """Lets a few requests through in each pass of the event loop, the others in order.

    A thousand inits at once would otherwise be one long pass that delays all other requests.
    """

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._queue: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def wait(self) -> None:
        """Wait for this request's turn, mostly without delay."""
        loop = asyncio.get_running_loop()
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._next, loop)
        if self._left:
            self._left -= 1
            return
        turn = loop.create_future()
        self._queue.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._size
        while self._queue and self._left:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._scheduled = bool(self._queue)
        if self._scheduled:
            loop.call_soon(self._next, loop)


async def read_body(
    scope: Scope,
    receive: Receive,
    parse: Callable[[bytes], T],
    *,
    budget: ByteBudget,
    settings: ServerSettings,
) -> T:
    """Return what `parse` makes of a request's body, read within its size, deadline and budget."""
    limit = settings.max_body_bytes
    too_large = Refused(
        413, "too_large", f"the body may have at most {limit:,} bytes", hang_up=True
    )
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not declared.isdigit() or len(declared) > 18 or int(declared) > limit:
        raise too_large
    chunks: list[bytes] = []

    async def read() -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "disconnected", "the connection was closed", hang_up=True)
            chunk, more = message.get("body", b""), message.get("more_body", False)
            budget.take(len(chunk))
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise too_large

    try:
        await asyncio.wait_for(read(), settings.body_timeout_s)
        return parse(chunks[0] if len(chunks) == 1 else b"".join(chunks))
    except asyncio.TimeoutError:
        message = f"the body did not arrive within {settings.body_timeout_s:g} s"
        raise Refused(408, "body_timeout", message, hang_up=True) from None
    finally:
        budget.give(sum(map(len, chunks)))
