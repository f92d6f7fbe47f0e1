"""Conversations of runs for a page: compressed many at a time, up to a limit.

They are read one by one and only what is compressed is held. Knows nothing of pages.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..run_result import RolloutRecord, RunId, RunResult
from ..storage.excerpt import encode, excerpt
from .formats import Conversations, Sections

TOGETHER = 64
"""Conversations that are compressed together: more are smaller, and slower to open one of."""
TOGETHER_SIZE = 1 << 19
"""Characters from which on no further one is added to them."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The conversations of a page."""

    parts: Sequence[str]
    """Lists of conversations: JSON, compressed, in base64."""
    places: Mapping[RunId, tuple[int, int]]
    """The part and the place in it, by run."""
    left_out: int
    """Runs whose conversations there was no room for."""


@dataclass(slots=True)
class _Packing:
    room: int
    parts: list[str] = field(default_factory=list)
    places: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    runs: list[RunId] = field(default_factory=list)
    size: int = 0
    left_out: int = 0

    def add(self, run: RunId, text: str) -> None:
        self.waiting.append(text)
        self.runs.append(run)
        self.size += len(text)
        if len(self.waiting) >= TOGETHER or self.size >= TOGETHER_SIZE:
            self.flush()

    def flush(self) -> None:
        """Compress what waits; leave it out where there is no room for it."""
        if not self.waiting:
            return
        part = compressed(f"[{','.join(self.waiting)}]")
        if len(part) > self.room:
            self.left_out += len(self.runs)
        else:
            self.room -= len(part)
            self.places |= {run: (len(self.parts), at) for at, run in enumerate(self.runs)}
            self.parts.append(part)
        self.waiting, self.runs, self.size = [], [], 0


def packed(
    runs: Iterable[RunResult], conversations: Conversations, sections: Sections, *, room: int
) -> Packed:
    """Return the conversations of runs, the first ones where there is no room for all.

    `room`: characters that the parts may have together.
    """
    packing = _Packing(room)
    for run in runs:
        if packing.left_out:  # what is read no more is not known to be there
            packing.left_out += 1
            continue
        record = conversations(run.run_id)
        section = sections.get(run.run_id, "") if record is None else ""
        if said := told(record, section):
            packing.add(run.run_id, encode(said))
    packing.flush()
    return Packed(packing.parts, packing.places, packing.left_out)


def told(record: RolloutRecord | None, section: str = "") -> dict[str, Any]:
    """Return what a page tells of a run beside its result, as JSON can hold it.

    `section` is what the run's item printed, where nothing else is known.
    """
    if record is None:
        return {"frames": section} if section else {}
    messages, left_out = excerpt(record.messages)
    found = {
        "messages": messages,
        "left_out": left_out,
        "calls": list(record.calls),
        "ground_truth": record.ground_truth,
        "reasons": dict(record.reasons),
        "frames": record.frames,
    }
    return {name: value for name, value in found.items() if value}


def compressed(text: str) -> str:
    """Return ASCII text as a page holds it: zlib's format in base64."""
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")
