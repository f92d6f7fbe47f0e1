"""Lines of JSON with a checksum, which journals and transcripts consist of.

Workers write transcripts, and import no more than this of what reads and writes journals.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..run_result import RunResult

RowRun = tuple[int, int]
"""Row index and run index."""

_MARK = b',"crc":'


def add_checksum(body: str) -> bytes:
    """Return the line for a JSON object with at least one field."""
    head = body.encode("ascii")[:-1]
    return b"%s%s%d}\n" % (head, _MARK, zlib.crc32(head))


def verify_checksum(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None when the line is torn or damaged."""
    head, mark, rest = line.rpartition(_MARK)
    digits = rest[:-2]
    if not mark or rest[-2:] != b"}\n" or not digits.isdigit() or len(digits) > 10:
        return None
    if zlib.crc32(head) != int(digits):
        return None
    found: dict[str, Any] = json.loads(head + b"}")
    return found


def result_of(fields: Mapping[str, Any], suite: str, *, cached: bool = False) -> RunResult:
    """Return a recorded run as one of the session's suite, without fields of later versions.

    Earlier versions recorded fractions of milliseconds.
    """
    known = {name: value for name, value in fields.items() if name in _FIELDS}
    known |= {name: round(known[name]) for name in _DURATIONS if name in known}
    return RunResult(**{**known, "suite": suite, "cached": cached})


_FIELDS = frozenset(each.name for each in fields(RunResult))
_DURATIONS = frozenset(name for name in _FIELDS if name.endswith("_ms"))
