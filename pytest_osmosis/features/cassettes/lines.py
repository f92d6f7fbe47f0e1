"""The lines of a cassette: requests without what varies from run to run, and their replies.

    {"part": ID, "value": …}                          a message, a tool: many requests share them
    {"request": ID, "method", "path", "body", "lists"}  the lists of the body, by the IDs of parts
    {"suite", "row", "run", "request": ID, "number", "status", "type", "reply"}   in one run

No header but the type of a reply's content is known here, and every text is masked. Knows no files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from osmosis_ai.models.transport.exchange import Reply
from osmosis_ai.rubric.prompt import RANDOM_TOKEN
from osmosis_ai.secret import masked, redact

_UNMATCHED = ("seed", "user")
"""Fields of a request that name its run: they decide nothing."""
_ID_LENGTH = 16

RunKey = tuple[str, int, int]
"""Suite, row and run; ("", -1, -1) for what no run has asked."""
NO_RUN: RunKey = ("", -1, -1)

encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str
).encode


def as_line(value: Mapping[str, Any]) -> bytes:
    """Return the value as a line; lone surrogates as JSON escapes them."""
    return encode(value).encode("utf-8", "backslashreplace") + b"\n"


def _id_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_LENGTH]


class Request:
    """A request, as it is compared with others."""

    def __init__(self, method: str, path: str, body: bytes) -> None:
        if token := RANDOM_TOKEN.search(body):
            body = body.replace(token[1], b"0" * len(token[1]))
        content = _content(body)
        fields = content.get("json")
        if isinstance(fields, dict):
            for name in _UNMATCHED:
                fields.pop(name, None)
        self.text = encode({"method": method, "path": redact(path), **content})
        self.id = _id_of(self.text)

    @cached_property
    def _divided(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The line's value, and the text of each part."""
        value: dict[str, Any] = json.loads(self.text)
        body = value.get("json")
        parts: dict[str, str] = {}
        if not isinstance(body, dict):
            return value, parts
        lists = {name: items for name, items in body.items() if isinstance(items, list)}
        for name, items in lists.items():
            del body[name]
            texts = [encode(item) for item in items]
            lists[name] = [_id_of(text) for text in texts]
            parts.update(zip(lists[name], texts, strict=True))
        return {**value, "lists": lists}, parts

    @property
    def value(self) -> dict[str, Any]:
        """The request's own line, without the parts."""
        return {**self._divided[0], "request": self.id}

    @property
    def parts(self) -> dict[str, Any]:
        """The items of its lists, by their IDs."""
        return {name: json.loads(text) for name, text in self._divided[1].items()}

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield what each line is of, and the line."""
        for name, value in self.parts.items():
            yield name, as_line({"part": name, "value": value})
        yield self.id, as_line(self.value)


def call_value(request: Request, run: RunKey, number: int, reply: Reply) -> dict[str, Any]:
    """Return the value of the line of a reply: `number` counts a run's equal requests."""
    suite, row, run_index = run
    return {
        "suite": suite,
        "row": row,
        "run": run_index,
        "request": request.id,
        "number": number,
        "status": reply.status,
        "type": reply.content_type,
        "reply": _content(reply.body),
    }


def reply_of(value: Mapping[str, Any]) -> Reply:
    """Return the reply that `call_value` was made of."""
    content = value["reply"]
    if "json" in content:
        body = encode(content["json"]).encode("utf-8", "backslashreplace")
    elif "text" in content:
        body = content["text"].encode()
    else:
        body = base64.b64decode(content["base64"])
    return Reply(value["status"], {"content-type": value["type"]}, body)


def _content(body: bytes) -> dict[str, Any]:
    """Return a body as JSON, as text or in base64, under the name of that."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}
    try:
        value = json.loads(text)
        return {"json": value if redact(text) == text else masked(value)}
    except (ValueError, RecursionError):
        return {"text": redact(text)}
