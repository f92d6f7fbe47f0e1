"""Whole conversations, one JSON line a run, written as runs end by whichever process ran them.

All processes append to one file: a line goes out under a lock of the kernel's, which a process that
is killed gives back, and begins a line of its own whatever the one before left behind. Nothing is
kept in memory. Knows neither pytest nor where secrets come from.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..results import RunResult
from .atomic_write import check_writable

FILE = "trajectories.jsonl"
"""The file in the directory that `--osmosis-trajectories` names."""
TEXT_LIMIT = 100_000
"""Characters of one string that are kept."""
MESSAGES_LIMIT = 2_000_000
"""Characters of a conversation, as JSON, that are kept: the first and the last messages."""
DEPTH_LIMIT = 100


class Conversation(NamedTuple):
    """What there is to write of a run, beside its result."""

    messages: Sequence[Mapping[str, Any]]
    calls: Sequence[Mapping[str, Any]] = ()
    """Usage of each model call."""
    ground_truth: str | None = None
    reasons: Mapping[str, Sequence[str]] = MappingProxyType({})
    """What judges said, by eval function."""


class Trajectories:
    """The file, open for appending; each process has its own."""

    def __init__(self, path: Path, *, on_failure: Callable[[str], None]) -> None:
        """`on_failure` is told once, when the file could not be written."""
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, result: RunResult, said: Conversation, *, redact: Callable[[str], str]) -> None:
        """Append one run's line; from any thread."""
        data = line(result, said, redact=redact)
        with self._lock:
            if self._descriptor < 0:
                return
            try:
                self._append(data)
            except OSError as error:
                self._on_failure(f"cannot write {self._path}: {error.strerror or error}")
                self._close()

    def close(self) -> None:
        """Nothing more is written; harmless when repeated."""
        with self._lock:
            self._close()

    def _append(self, data: bytes) -> None:
        descriptor = self._descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # a process was killed in the middle of a line
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def begin(path: Path, *, keep: bool) -> None:
    """See to it that the file can be written; `keep` what an earlier session wrote, or not.

    Raises:
        OSError: when it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_writable(path)
    if path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | (0 if keep else os.O_TRUNC))
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)


def line(result: RunResult, said: Conversation, *, redact: Callable[[str], str]) -> bytes:
    """One run's line: ASCII JSON, without secrets, within the limits."""
    record: dict[str, Any] = {
        "suite": result.suite,
        "row_index": result.row_index,
        "row_id": result.row_id,
        "run_index": result.run_index,
        "outcome": result.outcome,
        "scores": dict(result.scores),
        "error": result.error,
        "error_type": result.error_type,
        "started_at": result.started_at,
        "duration_ms": result.duration_ms,
        "model": result.model,
        "ground_truth": said.ground_truth,
        "messages": [_plain(message) for message in said.messages],
        "calls": [_plain(call) for call in said.calls],
    }
    if said.reasons:
        record["reasons"] = _plain(said.reasons)
    text = _encode(record)
    if len(text) > MESSAGES_LIMIT:
        text = _encode(_shortened(record))
    if redact(text) != text:
        text = _encode(_masked(record, redact))
    return text.encode("ascii") + b"\n"


_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def _shortened(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the beginning and the end of a conversation that is too long."""
    messages = record["messages"]
    sizes = [len(_encode(message)) for message in messages]
    head = _fitting(sizes, MESSAGES_LIMIT // 4)
    tail = _fitting(list(reversed(sizes[head:])), 3 * MESSAGES_LIMIT // 4)
    record["messages"] = [*messages[:head], *messages[len(messages) - tail :]]
    record["messages_left_out"] = len(messages) - head - tail
    return record


def _fitting(sizes: list[int], room: int) -> int:
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)


def _plain(value: Any, depth: int = DEPTH_LIMIT) -> Any:
    """The value as JSON can have it, long texts cut; what JSON lacks becomes its text."""
    if isinstance(value, str):
        return _cut(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0.0 else repr(value)
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {str(name): _plain(each, depth - 1) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth - 1) for each in value]
    return _cut(str(value))


def _cut(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}[… {len(text) - 2 * half} characters left out …]{text[-half:]}"


def _masked(value: Any, redact: Callable[[str], str]) -> Any:
    """The same with every string redacted: by parts, so that it stays the JSON that it is."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return dict(_masked_items(value, redact))
    if isinstance(value, list):
        return [_masked(each, redact) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if redact(repr(value)) == repr(value) else redact(repr(value))
    return value


def _masked_items(
    items: Mapping[str, Any], redact: Callable[[str], str]
) -> Iterator[tuple[str, Any]]:
    return ((redact(name), _masked(value, redact)) for name, value in items.items())
