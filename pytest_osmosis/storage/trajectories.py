"""`trajectories.jsonl`: whole conversations, a JSON line a run, made at the end.

What was said is copied as it was written when the run ended; before it stand the fields of the
result that people look for. Knows neither pytest nor where secrets come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..run_result import RunId, RunResult
from .atomic_write import write_whole
from .excerpt import TEXT_LIMIT, encode, excerpt

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
    if len(said) > TEXT_LIMIT:
        said = _cut(said)
    return b"%s,%s}\n" % (encode(told)[:-1].encode("ascii"), said)


def _cut(said: bytes) -> bytes:
    """Return the same with messages that are no longer than a reader can take."""
    told = json.loads(b"{%s}" % said)
    told["messages"], left_out = excerpt(told["messages"])
    if left_out:
        told["messages_left_out"] = told.get("messages_left_out", 0) + left_out
    return encode(told)[1:-1].encode("ascii")
