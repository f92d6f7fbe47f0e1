"""The platform's own log: text or JSON lines on standard error.

Of an exception it has the types and the places in the code; its text may hold what users sent.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from starlette.types import Scope

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
FACTS = "osmosis_facts"
"""The attribute of a record with what only JSON shows."""
_log = logging.getLogger("osmosis_platform.requests")


def configure(form: str, level: str) -> None:
    """Write what is logged to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Text())
    logging.basicConfig(level=getattr(logging, level.upper()), handlers=[handler], force=True)
    for name in ("alembic", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def log_request(scope: Scope, status: int, duration_s: float) -> None:
    """Log a request by its route: a path may hold what users typed, a query a signature."""
    state = scope.get("state", {})
    facts = {
        "request_id": state.get("request_id", ""),
        "method": scope["method"] if scope["method"] in _METHODS else "other",
        "route": getattr(scope.get("route"), "path", "(none)"),
        "status": status,
        "duration_ms": round(duration_s * 1000, 1),
        "user": state.get("user"),  # whose token it had
    }
    _log.info(
        "request %(request_id)s %(method)s %(route)s: %(status)d in %(duration_ms)s ms",
        facts,
        extra={FACTS: facts},
    )


class Text(logging.Formatter):
    """A line with a UTC time and a level; the frames of an exception below."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatException(self, ei: Any) -> str:
        """Return the frames without the texts of exceptions."""
        return "\n".join(_frames(ei))


class JsonLines(Text):
    """One JSON document a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        found: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FACTS, {}),
        }
        if record.exc_info:
            found["exception"] = [*_frames(record.exc_info)]
        return json.dumps(found)


def _frames(
    ei: tuple[type[BaseException] | None, BaseException | None, TracebackType | None],
) -> Iterator[str]:
    error = ei[1]
    if error is None:
        return
    yield type(error).__name__
    for frame in traceback.extract_tb(ei[2]):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
