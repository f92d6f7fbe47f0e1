"""Live updates: server-sent events of the parts of a page that have changed.

A stream ends when its page goes, when what it shows has ended, when its visitor is logged out, when
the platform ends, and after a while in any case: the browser then connects again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ..errors import Refused
from .context import PageContext, look
from .rendering import ElsewhereFirst, Page, page

TOTAL = 200
"""Streams at once."""
EACH = 12
"""Of one user."""
AGE_S = 300.0
_POLL_S = 1.0
_SILENCE_S = 15.0
"""After which a stream says that it is there."""
_RETRY_MS = 2000


@dataclass(frozen=True, slots=True)
class LivePart:
    """A part of a page; made only when its state is another one than before."""

    element: str
    """The id of the element that it fills."""
    state: Any
    make: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Update:
    """What a page shows now."""

    parts: Sequence[LivePart]
    lines: str = ""
    """What is new in the log, as HTML."""
    cursor: int = 0
    """Up to where the log has been shown."""
    has_ended: bool = False


Look = Callable[[PageContext, int], Update]
"""What a page shows to a visitor, its log from a cursor on."""


@dataclass(slots=True)
class Streams:
    """The streams that are open in this process, and their end; used in the event loop alone."""

    total: int = TOTAL
    each: int = EACH
    is_closing: bool = False
    _open: Counter[str] = field(default_factory=Counter)

    def enter(self, user_id: str) -> None:
        """Count a stream of a user; refuse one too many."""
        if self._open.total() >= self.total or self._open[user_id] >= self.each:
            message = "too many pages show live updates; close some of them"
            raise Refused(503, "too_many_streams", message, headers={"Retry-After": "30"})
        self._open[user_id] += 1

    def leave(self, user_id: str) -> None:
        """Remove a stream from the count."""
        self._open[user_id] -= 1
        self._open += Counter()  # drops those with none

    @property
    def count(self) -> int:
        """How many there are."""
        return self._open.total()


class EventStream(StreamingResponse):
    """A stream of events that is counted as long as it is open."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str, None], streams: Streams, user_id: str) -> None:
        super().__init__(events, headers={"X-Accel-Buffering": "no"})
        self._events, self._streams, self._user_id = events, streams, user_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until they end, or the page goes."""
        self._streams.enter(self._user_id)
        try:
            async with aclosing(self._events):
                await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._user_id)


def streamed_by(handler: Look) -> Page:
    """Return the endpoint of a page's events."""

    async def respond(request: Request) -> Response:
        def entered(context: PageContext) -> str:
            handler(context, _cursor(request))  # refuses what is not there, before the stream
            return context.user.id

        user_id = await run_in_threadpool(look, request, entered)
        streams: Streams = request.app.state.streams
        return EventStream(_events(request, handler, streams), streams, user_id)

    return page(respond)


async def _events(request: Request, handler: Look, streams: Streams) -> AsyncGenerator[str, None]:
    end, said = time.monotonic() + AGE_S, time.monotonic()
    cursor, sent = _cursor(request), dict[str, Any]()
    yield f"retry: {_RETRY_MS}\n\n"
    while not streams.is_closing and time.monotonic() < end:
        try:
            events, cursor, ended = await run_in_threadpool(_news, request, handler, cursor, sent)
        except (Refused, ElsewhereFirst):
            yield _event("gone", "{}")
            return
        for event in events:
            yield event
        if ended:
            yield _event("end", "{}")
            return
        if events:
            said = time.monotonic()
        elif time.monotonic() - said >= _SILENCE_S:
            said = time.monotonic()
            yield ": still here\n\n"
        await anyio.sleep(_POLL_S)


def _news(
    request: Request, handler: Look, cursor: int, sent: dict[str, Any]
) -> tuple[list[str], int, bool]:
    """Return the events for what has changed since those before."""

    def make_events(context: PageContext) -> tuple[list[str], int, bool]:
        update = handler(context, cursor)
        events = []
        for part in update.parts:
            if part.element not in sent or sent[part.element] != part.state:
                sent[part.element] = part.state
                events.append(_part(part))
        if update.lines:
            events.append(_event("log", json.dumps({"html": update.lines}), update.cursor))
        return events, update.cursor, update.has_ended

    return look(request, make_events)


def _part(part: LivePart) -> str:
    return _event("part", json.dumps({"id": part.element, "html": part.make()}))


def _event(name: str, data: str, number: int | None = None) -> str:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {data}\n\n"


def _cursor(request: Request) -> int:
    """Return where the log continues: after what the browser has received, else the page has."""
    texts = (request.headers.get("last-event-id", ""), request.query_params.get("after", ""))
    numbers = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 18]
    return max(numbers, default=0)
