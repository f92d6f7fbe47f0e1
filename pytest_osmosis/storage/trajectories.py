"""`trajectories.jsonl`: whole conversations, a JSON line a run, made of the transcripts at the end.

Knows transcripts; knows neither pytest nor where secrets come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..run_result import RolloutRecord
from .atomic_write import write_whole
from .excerpt import encode, excerpt
from .transcripts import Transcripts

_CHUNK = 1 << 20


def export(path: Path, folders: Iterable[Path]) -> None:
    """Write the transcripts below the run folders; OSError leaves what was there."""
    write_whole(path, _chunks(folders), mode=0o600)


def _chunks(folders: Iterable[Path]) -> Iterator[bytes]:
    """Yield the lines, many at a time."""
    waiting: list[bytes] = []
    size = 0
    for folder in folders:
        for record in Transcripts(folder).records():
            waiting.append(line(record))
            size += len(waiting[-1])
            if size > _CHUNK:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)


def line(record: RolloutRecord) -> bytes:
    """Return one run's line: ASCII JSON within the limits."""
    result = record.result
    messages, left_out = excerpt(record.messages)
    told = {
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
        "ground_truth": record.ground_truth,
        "messages": messages,
        "calls": record.calls,
    }
    if record.reasons:
        told["reasons"] = record.reasons
    if record.frames:
        told["frames"] = record.frames
    if left_out:
        told["messages_left_out"] = left_out
    return encode(told).encode("ascii") + b"\n"
