"""The body of a request: read within a size and a time, and parsed strictly."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import anyio
from starlette.requests import Request

from ..errors import Refused

MAX_DEPTH = 64


async def read_body(request: Request, *, limit: int, timeout_s: float) -> bytes:
    """Return the whole body; refuse one that is too long before it is read."""
    announced = content_length(request)
    if announced is not None and announced > limit:
        raise too_large(limit)
    body = bytearray()
    try:
        with anyio.fail_after(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large(limit)
    except TimeoutError:
        raise Refused(
            408, "timeout", f"the body did not arrive within {timeout_s:g} s", headers=CLOSE
        ) from None
    return bytes(body)


CLOSE = {"Connection": "close"}
"""What is left of the body is not read."""


def content_length(request: Request) -> int | None:
    """Return the length that the request announces."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def too_large(limit: int) -> Refused:
    """Return the refusal of a body of more than `limit` bytes."""
    message = f"the body is larger than {limit:,} bytes"
    return Refused(413, "too_large", message, headers=CLOSE)


def parse_json(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the object in a body; an empty body is an empty object.

    NaN, Infinity, a key that is given twice, half a surrogate pair and nesting beyond `MAX_DEPTH`
    are refused.
    """
    if not body:
        return {}
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "media_type", "send the body with Content-Type: application/json")
    try:
        found = json.loads(
            body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique
        )
        depth = _depth(found)
        if b"\\u" in body:  # half of a surrogate pair is no character, and cannot be stored
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise Refused(422, "invalid_json", "the body is not JSON") from None
    if not isinstance(found, dict):
        raise Refused(422, "invalid_json", "the body is not a JSON object")
    if depth > MAX_DEPTH:
        raise Refused(422, "invalid_json", f"the body is nested more than {MAX_DEPTH} deep")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _depth(value: Any) -> int:
    deepest, layer = 0, [value]
    while layer:
        deepest += 1
        below: list[Any] = []
        for each in layer:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        layer = below
    return deepest
