"""A streamed answer that is handed on as it comes: that of the bridge's client.

Knows the events of a stream; neither HTTP nor who reads them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .chunks import events_in, joined_chunks
from .errors import CallFault
from .faults import failure_in
from .progress import current_call
from .transport.exchange import EVENT_STREAM

Give = Callable[[dict[str, Any]], Awaitable[None]]


class Passing:
    """The events of one call's answer, each given on once it is whole.

    An event that tells of a failure is not: it is raised, as is a stream that is none.
    """

    def __init__(self, give: Give) -> None:
        self._give = give
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        """Those of the last try."""
        self.begun = False
        """A part has been given on: there is no other try."""

    def started(self, status: int, headers: Mapping[str, str]) -> Passing | None:
        """Begin the reply to a try; None for one that is to be whole first."""
        kind = headers.get("Content-Type", "").lower()
        if EVENT_STREAM not in kind or status >= 300 or "Content-Encoding" in headers:
            return None
        self._rest = b""
        self.events = []
        return self

    @staticmethod
    def is_refused(fault: CallFault) -> bool:
        """Return whether a request was refused since it asks for a stream, or usage in it."""
        return fault.kind == "bad_request" and "stream" in f"{fault.param} {fault.detail}".lower()

    async def take(self, piece: bytes) -> None:
        """Take what has come; raise CallFault."""
        whole, end, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest
        if not end:
            return
        try:
            events = [*events_in(whole)]
        except (ValueError, RecursionError):
            shown = whole[:800].decode("utf-8", "replace")
            summary = "a 200 that is no stream of completions"
            raise CallFault("protocol", shown, summary=summary, retried=True) from None
        for event in events:
            failure = failure_in(event)
            if failure is not None:
                raise failure
            self.events.append(event)
            if event.get("choices"):
                self.begun = True
                if (progress := current_call()) is not None:
                    progress.is_arriving = True
                await self._give(event)

    def answer(self) -> dict[str, Any]:
        """Return the answer so far, as a message."""
        message: dict[str, Any] = joined_chunks(self.events)["choices"][0]["message"]
        return message
