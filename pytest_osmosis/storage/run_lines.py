"""A run on disk: a line with its result, and behind it a line with what was said.

Both are written at once, by the process that ran it. A result that changes afterwards (by a hook,
by the asserts of a test) is a line alone: what was said stays behind the first one. The first line
says how long the second is, so that results are read without it. Every line is JSON with a
checksum. Knows lines; does not know which files there are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from osmosis_ai.escaping import encodable_json
from osmosis_ai.secret import masked, redact

from ..run_result import RolloutRecord, RunResult
from .excerpt import encode, excerpt, plain

RowRun = tuple[int, int]
"""Row index and run index."""


class Place(NamedTuple):
    """Where the two lines of a run are."""

    path: Path
    offset: int
    size: int


SIZE_LIMIT = 8 << 20
"""Bytes of a conversation that is kept as it was; of a longer one there is an excerpt."""
_CHECKSUM = b',"crc":'
_FIELDS = frozenset(each.name for each in fields(RunResult))


def add_checksum(body: str) -> bytes:
    """Return the line for a JSON object with at least one field."""
    head = body.encode("ascii")[:-1]
    return b"%s%s%d}\n" % (head, _CHECKSUM, zlib.crc32(head))


def verify_checksum(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None when the line is torn or damaged."""
    body = _verified(line)
    return None if body is None else json.loads(body + b"}")


def _verified(line: bytes) -> bytes | None:
    """Return a line's object as it is written, but for its last brace; None for no whole line."""
    head, mark, rest = line.rpartition(_CHECKSUM)
    digits = rest[:-2]
    if not mark or rest[-2:] != b"}\n" or not digits.isdigit() or len(digits) > 10:
        return None
    return head if zlib.crc32(head) == int(digits) else None


# ---- written


def run_lines(record: RolloutRecord) -> bytes:
    """Return the two lines of a run; the result is the JSON that other processes are sent too."""
    whole, text = _encode_conversation(record)
    said = add_checksum(text)
    more = f'"said":{len(said)},"whole":{"true" if whole else "false"}'
    return add_checksum(f'{{"run":{record.encoded},{more}}}') + said


def result_line(result: RunResult) -> bytes:
    """Return the line of a run whose result has changed since its lines were written."""
    return add_checksum(f'{{"run":{result.to_json()},"said":0,"whole":false}}')


def _encode_conversation(record: RolloutRecord) -> tuple[bool, str]:
    """Return whether the conversation is there as it was, and what was said as JSON."""
    told: dict[str, Any] = {
        "ground_truth": record.ground_truth,
        "messages": record.messages,
        "calls": record.calls,
    }
    if record.reward is not None:
        told["reward"] = record.reward
    if record.reasons:
        told["reasons"] = record.reasons
    if record.frames:
        told["frames"] = record.frames
    whole = True
    try:
        text = encode(told)
    except (TypeError, ValueError, RecursionError):  # messages hold what JSON has not
        whole = False
        told = plain(told)
        text = encode(told)
    if redact(text) != text:
        told = masked(json.loads(text))
        text = encode(told)
    if len(text) > SIZE_LIMIT:
        whole = False
        told["messages"], told["messages_left_out"] = excerpt(json.loads(text)["messages"])
        text = encode(told)
    return whole, encodable_json(text)


# ---- read


def result_of(told: Mapping[str, Any], suite: str) -> RunResult:
    """Return the result of a run's first line as a suite's, without fields of later versions."""
    known = {name: value for name, value in told["run"].items() if name in _FIELDS}
    return RunResult(**{**known, "suite": suite})


def record_of(lines: bytes) -> RolloutRecord | None:
    """Return the run of two lines; None for damaged ones."""
    first, end, second = lines.partition(b"\n")
    told, said = verify_checksum(first + end), verify_checksum(second)
    if told is None or said is None:
        return None
    return RolloutRecord(
        result_of(told, told["run"]["suite"]),
        said.get("frames", ""),
        said["messages"] or [],
        said["ground_truth"],
        reward=said.get("reward"),
        calls=said["calls"],
        reasons=said.get("reasons", {}),
    )


def read_record(place: Place) -> RolloutRecord | None:
    """Return the run at a place, with what was said; None for damaged lines."""
    try:
        with place.path.open("rb") as file:
            file.seek(place.offset)
            return record_of(file.read(place.size))
    except FileNotFoundError:  # it was kept until its session ended, or has been removed
        return None


def said_in(lines: bytes) -> bytes | None:
    """Return what was said as it is written, without its braces; None for a damaged line."""
    said = _verified(lines.partition(b"\n")[2])
    return None if said is None else said[1:]
