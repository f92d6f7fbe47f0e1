"""Conversations as JSON can hold them, cut to what a reader can take.

And the file of them, `trajectories.jsonl`, a line a run: what was said, as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from osmosis_ai.escaping import encodable_json

from ..run_result import RunId, RunResult
from .atomic_write import write_whole

TEXT_LIMIT = 100_000
"""Characters of one string in an excerpt."""
MESSAGES_LIMIT = 2_000_000
"""Characters of an excerpt's messages, as JSON: the first and the last messages stay."""
DEPTH_LIMIT = 100

encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
"""Any value of JSON as ASCII; ValueError for a number that JSON has no name for."""


def plain(value: Any, depth: int = DEPTH_LIMIT) -> Any:
    """Return the value as JSON can hold it; what JSON lacks becomes its text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= 1024 else hex(value)  # Python writes no longer ones
    if isinstance(value, float):
        return value if value - value == 0.0 else repr(value)
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {_text(name): plain(each, depth - 1) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth - 1) for each in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except (Exception, SystemExit):  # noqa: BLE001 - the value's own code: a closed handle, say
        return f"<{type(value).__name__}>"


def excerpt(messages: list[Any]) -> tuple[list[Any], int]:
    """Return the messages within the limits, and how many were left out of their middle."""
    if len(encode(messages)) <= min(TEXT_LIMIT, MESSAGES_LIMIT):
        return messages, 0
    messages = [_cut(message) for message in messages]
    sizes = [len(encode(message)) for message in messages]
    if sum(sizes) <= MESSAGES_LIMIT:
        return messages, 0
    head = _fitting(sizes, MESSAGES_LIMIT // 4)
    tail = _fitting(sizes[head:][::-1], 3 * MESSAGES_LIMIT // 4)
    kept = [*messages[:head], *messages[len(messages) - tail :]]
    return kept, len(messages) - len(kept)


def _fitting(sizes: list[int], room: int) -> int:
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    if not isinstance(value, str) or len(value) <= TEXT_LIMIT:
        return value
    half = TEXT_LIMIT // 2
    return f"{value[:half]}[… {len(value) - 2 * half} characters left out …]{value[-half:]}"


def is_encodable(messages: list[Any]) -> bool:
    """Return whether every file can hold the messages: none has half a character."""
    try:
        text = encode(messages)
    except (TypeError, ValueError, RecursionError):
        text = encode(plain(messages))
    return "\\ud" not in text or encodable_json(text) == text


_CHUNK = 1 << 20


def export(path: Path, runs: Iterable[RunResult], said: Callable[[RunId], bytes | None]) -> None:
    """Write the runs of which something was said; OSError leaves what was there."""
    write_whole(path, _chunks(runs, said), mode=0o600)


def _chunks(runs: Iterable[RunResult], said: Callable[[RunId], bytes | None]) -> Iterator[bytes]:
    """Yield the lines, many at a time."""
    waiting: list[bytes] = []
    size = 0
    for run in runs:
        fields = said(run.run_id)
        if fields is not None:
            waiting.append(line(run, fields))
            size += len(waiting[-1])
        if size > _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def line(run: RunResult, said: bytes) -> bytes:
    """Return one run's line: ASCII JSON within the limits."""
    told = {
        "suite": run.suite,
        "row_index": run.row_index,
        "row_id": run.row_id,
        "run_index": run.run_index,
        "outcome": run.outcome,
        "scores": run.scores,
        "error": run.error,
        "error_type": run.error_type,
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "model": run.model,
    }
    if len(said) > min(TEXT_LIMIT, MESSAGES_LIMIT):
        said = _shortened(said)
    return b"%s,%s}\n" % (encode(told)[:-1].encode("ascii"), said)


def _shortened(said: bytes) -> bytes:
    """Return the same with messages that are no longer than a reader can take."""
    told = json.loads(b"{%s}" % said)
    told["messages"], left_out = excerpt(told["messages"])
    if left_out:
        told["messages_left_out"] = told.get("messages_left_out", 0) + left_out
    return encode(told)[1:-1].encode("ascii")
