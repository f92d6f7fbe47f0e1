"""How each request ended, for the log and the figures: its route, never its path or query.

A path may hold what users typed, and the URL of an upload its signature.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
NO_ROUTE = "(none)"


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """A request that was answered."""

    method: str
    route: str
    """As `/api/cli/eval-runs/{name}`."""
    status: int
    duration_s: float
    request_id: str
    user: str | None
    """Whose token it had; None without one."""


class Observing:
    """Middleware around all others."""

    def __init__(self, app: ASGIApp, observe: Callable[[ObservedRequest], None]) -> None:
        self.app = app
        self.observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and say how it ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500  # unless the answer begins with another

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_noting)
        finally:
            self.observe(_exchange(scope, status, time.perf_counter() - begun))


def _exchange(scope: Scope, status: int, duration_s: float) -> ObservedRequest:
    state = scope.get("state", {})
    return ObservedRequest(
        method=scope["method"] if scope["method"] in _METHODS else "other",
        route=getattr(scope.get("route"), "path", NO_ROUTE),
        status=status,
        duration_s=duration_s,
        request_id=state.get("request_id", ""),
        user=state.get("user"),
    )
