"""What an endpoint wants otherwise than it is asked, learnt from its refusals.

`max_tokens` under its other name, and streamed answers. Knows requests; sends none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import CallFault

STREAM: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
MOST = 2
"""Changes of one request: the name, and the stream."""


class Adaptation:
    """How requests to one model at one endpoint are sent; shared by all its calls."""

    def __init__(self, *, can_stream: bool = False) -> None:
        self._can_stream = can_stream
        self._names: dict[str, str] = {}
        self.streams = False
        """Answers are asked for in streams."""
        self.is_needed = False
        """Something has been learnt."""

    def apply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request as the endpoint wants it."""
        named = {self._names.get(name, name): value for name, value in request.items()}
        return {**named, **STREAM} if self.streams else named

    def learn(self, fault: CallFault, sent: Mapping[str, Any]) -> bool:
        """Return whether a refused request is worth being sent again, in another way."""
        if fault.instead is None:
            return False
        refused, wanted = fault.instead
        if wanted == "stream":
            self.streams = self._can_stream
            self.is_needed = self.is_needed or self.streams
            return self._can_stream and not sent.get("stream")
        if refused not in sent or wanted in sent or self._names.get(wanted) == refused:
            return False
        self._names[refused] = wanted
        self.is_needed = True
        return True

    def notes(self, request: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what is sent otherwise than a request says, in words."""
        names = [f"{old} sent as {new}" for old, new in self._names.items() if old in request]
        return (*names, *(["answers streamed: the endpoint gives no others"] * self.streams))
