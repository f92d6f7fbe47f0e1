"""Requests and responses of a server, and the bytes of a response.

`connection` parses the bytes of requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A status and a body."""

    status: int
    body: Mapping[str, Any] | bytes
    """An object that is sent as JSON, or bytes as they are."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


def event_stream(body: bytes) -> Response:
    """A response with the server-sent events in a body."""
    kind = "text/event-stream; charset=utf-8"
    return Response(200, body, headers={"Cache-Control": "no-cache"}, content_type=kind)


def problem(status: int, message: str, **more: Any) -> Response:
    """A response with OpenAI's error object."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Response(status, {"error": {**error, **more}})


def encode(response: Response, *, keep_alive: bool) -> bytes:
    """Return the bytes of a response."""
    body = response.body
    if not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=True).encode("ascii")
    lines = [
        f"HTTP/1.1 {response.status} {_phrase(response.status)}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
