"""What a rollout prints and logs belongs to its own item, not to the one that pytest is at.

A context variable says which rollout is running; the write methods of the streams and a handler of
the root logger look at it. Knows pytest's capture and logging plugins by their attributes only and
does without what it does not find there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from osmosis_ai.secret import Redactor

from .redaction import LogFilter, handlers_of

CAP = 64 * 1024
"""Characters of one stream that are kept: the first and the last halves of that."""

_current: ContextVar[Captured | None] = ContextVar("osmosis_captured", default=None)


class _Clipped:
    """Text of which head and tail are kept."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._room = CAP // 2
        self._tail = ""
        self._dropped = 0

    def write(self, text: str) -> None:
        if self._room > 0:
            self._head.append(text[: self._room])
            text, self._room = text[self._room :], self._room - len(text)
        if text:
            self._tail += text
            excess = len(self._tail) - CAP // 2
            if excess > CAP // 2:
                self._dropped += excess
                self._tail = self._tail[excess:]

    def text(self) -> str:
        dropped, tail = self._dropped, self._tail
        if len(tail) > CAP // 2:
            dropped += len(tail) - CAP // 2
            tail = tail[-CAP // 2 :]
        gap = f"\n[... {dropped} characters left out ...]\n" if dropped else ""
        return "".join(self._head) + gap + tail


class Captured:
    """What one rollout wrote."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, _Clipped] = {}

    def write(self, kind: str, text: str) -> None:
        """Keep text of one kind: stdout, stderr or log."""
        clipped = self._texts.get(kind)
        if clipped is None:
            clipped = self._texts[kind] = _Clipped()
        clipped.write(text)

    def sections(self) -> list[tuple[str, str]]:
        """Title and text of each kind, as pytest reports hold them."""
        return [(f"Captured {kind} rollout", kept.text()) for kind, kept in self._texts.items()]


def capture() -> Captured:
    """From here on, what this task and those that it starts write is kept in the result."""
    captured = Captured()
    _current.set(captured)
    return captured


def route(config: Any, redact: Redactor) -> Callable[[], None]:
    """Begin to route, secrets masked in the log; call the result to end it."""
    undo = [_route_log(config, LogFilter(redact))]
    if config.option.capture != "no":
        undo += [_route_stream(stream, kind) for stream, kind in _streams(config)]

    def end() -> None:
        for step in reversed(undo):
            step()

    return end


def _streams(config: Any) -> list[tuple[Any, str]]:
    """The real streams and those that pytest puts in their place while it captures."""
    found = [(sys.stdout, "stdout"), (sys.stderr, "stderr")]
    manager = config.pluginmanager.getplugin("capturemanager")
    capturing = getattr(manager, "_global_capturing", None)
    for kind, name in (("stdout", "out"), ("stderr", "err")):
        part = getattr(capturing, name, None)
        part = getattr(part, "syscapture", part)
        for attribute in ("tmpfile", "_old"):
            found.append((getattr(part, attribute, None), kind))
    unique = {id(stream): (stream, kind) for stream, kind in found if hasattr(stream, "write")}
    return list(unique.values())


def _route_stream(stream: Any, kind: str) -> Callable[[], None]:
    write = stream.write

    def routed(text: str) -> int:
        captured = _current.get()
        if captured is None:
            return int(write(text))
        captured.write(kind, str(text))
        return len(text)

    try:
        stream.write = routed
    except AttributeError:  # a stream of a kind that takes no attributes: it is left as it is
        return lambda: None

    def end() -> None:
        if stream.__dict__.get("write") is routed:
            del stream.write

    return end


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        captured = _current.get()
        if captured is not None:
            captured.write("log", self.format(record) + "\n")


def _route_log(config: Any, masking: LogFilter) -> Callable[[], None]:
    root = logging.getLogger()
    plugin = config.pluginmanager.getplugin("logging-plugin")
    handler = _LogHandler(getattr(plugin, "log_level", None) or 0)
    formatter = getattr(plugin, "formatter", None)
    if formatter is not None:
        handler.setFormatter(formatter)
    root.addHandler(handler)
    theirs = handlers_of(plugin)
    for other in (*theirs, handler):
        other.addFilter(masking)
    for other in theirs[:2]:
        other.addFilter(_is_not_a_rollouts)

    def end() -> None:
        root.removeHandler(handler)
        for other in theirs:
            other.removeFilter(masking)
            other.removeFilter(_is_not_a_rollouts)

    return end


def _is_not_a_rollouts(record: logging.LogRecord) -> bool:
    return _current.get() is None
