"""What a rollout prints and logs goes to its own item, not to the one that pytest is running.

Rollouts run ahead of their items, several at once, and pytest has no hook for the output of code
that is not an item's: the write methods of the streams and a handler of the root logger ask which
rollout is writing. Nor can a rollout close the streams that all share. Uses attributes of pytest's
capture and logging plugins, and goes without those that are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from osmosis_ai.running.captured import current_rollout

from .. import compat
from .redaction import LogFilter


def route(config: Any) -> Callable[[], None]:
    """Route the output of rollouts, secrets masked in the log, until the result is called."""
    undo = [_route_log(config)]
    if getattr(config.option, "capture", "no") != "no":
        undo += [_route_stream(stream, kind) for stream, kind in compat.captured_streams(config)]

    def end() -> None:
        for step in reversed(undo):
            step()

    return end


def _route_stream(stream: Any, kind: str) -> Callable[[], None]:
    write, close = stream.write, getattr(stream, "close", _nothing)

    def routed(text: str) -> int:
        captured = current_rollout()
        if captured is None:
            return int(write(text))
        captured.write(kind, str(text))
        return len(text)

    def close_outside_rollouts() -> None:
        if current_rollout() is None:
            close()

    try:
        stream.write, stream.close = routed, close_outside_rollouts
    except AttributeError:  # a stream that takes no attributes is left as it is
        return lambda: None

    def end() -> None:
        if stream.__dict__.get("write") is routed:
            del stream.write, stream.close

    return end


def _nothing() -> None:
    """Close a stream that cannot be closed."""


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        captured = current_rollout()
        if captured is not None:
            captured.write("log", self.format(record) + "\n")


def _route_log(config: Any) -> Callable[[], None]:
    root = logging.getLogger()
    level, formatter = compat.log_settings(config)
    handler = _LogHandler(level)
    if formatter is not None:
        handler.setFormatter(formatter)
    root.addHandler(handler)
    masking = LogFilter()
    theirs = compat.log_handlers(config)
    for other in (*theirs, handler):
        other.addFilter(masking)
    for other in theirs[:2]:
        other.addFilter(_is_outside_rollouts)

    def end() -> None:
        root.removeHandler(handler)
        for other in theirs:
            other.removeFilter(masking)
            other.removeFilter(_is_outside_rollouts)

    return end


def _is_outside_rollouts(record: logging.LogRecord) -> bool:
    return current_rollout() is None
