"""What an HTTP exchange gives: a whole reply, or the fault that stands in its place.

Knows no client: `client` makes these of what aiohttp returns and raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import CallFault, ErrorKind

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Largest decoded body of a reply."""

EVENT_STREAM = "text/event-stream"
"""As `Accept`: the answer may be streamed, and is read to its end."""
JSON_HEADERS: Mapping[str, str] = {
    "User-Agent": "pytest-osmosis",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": "application/json",
}
"""Of every request with a JSON body; never given to the session, which sends its own to proxies."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP reply; `headers` finds names in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """The header as it came; empty without one."""
        return self.headers.get("content-type", "")


class TransportError(CallFault):
    """No whole reply."""

    def __init__(self, kind: ErrorKind, detail: str = "", *, summary: str = "") -> None:
        retried = kind in ("unreachable", "connection", "timeout")
        super().__init__(kind, detail, summary=summary, retried=retried)


class ClientClosed(Exception):
    """The client was closed before the exchange ended."""
