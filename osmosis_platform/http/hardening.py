"""What holds for every request: known Host headers, safe answers, a line in the log, no traceback.

No header for CORS is ever sent: browsers let no page of another origin read an answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..database.connection import cause, state
from ..errors import Refused, busy, no_room
from ..identifiers import new_request_id
from .log import log_request

_LOG = logging.getLogger("osmosis_platform")
REQUEST_ID = "X-Request-Id"
"""By which the platform's log names a request."""
SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Set where the answer does not set them itself."""


class Hardening:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str]) -> None:
        self.app = app
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass the life cycle on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        request_id = scope.setdefault("state", {})["request_id"] = new_request_id()
        begun, status = time.perf_counter(), 500  # unless the answer begins with another

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                headers[REQUEST_ID] = request_id
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self.app
        if not self._is_known(Headers(scope=scope)):
            refused = Refused(400, "wrong_host", "this platform does not answer to this Host")
            answer = error_response(refused)
        try:
            await answer(scope, receive, send_safely)
        finally:
            log_request(scope, status, time.perf_counter() - begun)

    def _is_known(self, headers: Headers) -> bool:
        values = headers.getlist("host")
        if len(values) != 1 or "@" in values[0]:
            return False
        try:
            found = urlsplit(f"//{values[0]}").hostname
        except ValueError:
            return False
        return (found or "") in self.allowed_hosts


def error_response(error: Refused) -> Response:
    """Return the answer to a request that is refused."""
    return JSONResponse(error.document, status_code=error.status, headers=error.headers)


async def on_refused(request: Request, error: Exception) -> Response:
    """Answer what a handler refuses."""
    assert isinstance(error, Refused)
    return error_response(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: an unknown path or method."""
    assert isinstance(error, HTTPException)
    names = {404: "not_found", 405: "method_not_allowed"}
    refused = Refused(
        error.status_code,
        names.get(error.status_code, "http_error"),
        f"{error.detail.lower()}: there is no such call",
        headers=error.headers,
    )
    return error_response(refused)


async def on_database_error(request: Request, error: Exception) -> Response:
    """Answer a request for which the database is locked, full or away, or another was first."""
    _log(request, error)
    return error_response(no_room() if state(error) == "full" else busy())


async def on_data_error(request: Request, error: Exception) -> Response:
    """Answer a request with a value that no column can hold, as a NUL character in PostgreSQL."""
    _log(request, error)
    return error_response(Refused(422, "invalid", "a value has a character that cannot be stored"))


async def on_departure(request: Request, error: Exception) -> Response:
    """Answer a request whose client left before its body was whole: no failure of ours."""
    return error_response(Refused(400, "incomplete", "the body ended before it was whole"))


async def on_failure(request: Request, error: Exception) -> Response:
    """Answer a request that met an error of ours; its text, which may hold values, is not sent."""
    _log(request, error)
    headers = {**SAFE_HEADERS, REQUEST_ID: request.state.request_id}
    message = "the platform failed; its log has more under the id of the request"
    return error_response(Refused(500, "internal", message, headers=headers))


def _log(request: Request, error: Exception) -> None:
    where = f"{request.method} {request.scope['route'].path}" if "route" in request.scope else ""
    _LOG.error("request %s %s failed: %s", request.state.request_id, where, cause(error))
