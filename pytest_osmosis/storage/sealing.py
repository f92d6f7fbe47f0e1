"""Lines of JSON that tell by themselves whether they are whole: an object whose last field is the
checksum of all before it. Knows nothing of what the lines mean.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from osmosis_ai.jsontext import compact_encoder

_MARK = b',"crc":'
encode = compact_encoder(ensure_ascii=True)
"""Any value of JSON as ASCII; ValueError for a number that JSON has no name for."""


def add_checksum(body: str) -> bytes:
    """The line for a JSON object with at least one field."""
    head = body.encode("ascii")[:-1]
    return b"%s%s%d}\n" % (head, _MARK, zlib.crc32(head))


def sealed_body(line: bytes) -> bytes | None:
    """The object of a line, without its checksum; None when the line is torn or damaged."""
    head, mark, rest = line.rpartition(_MARK)
    digits = rest[:-2]
    if not mark or rest[-2:] != b"}\n" or not digits.isdigit() or len(digits) > 10:
        return None
    return head + b"}" if zlib.crc32(head) == int(digits) else None


def verify_checksum(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None when the line is torn or damaged."""
    body = sealed_body(line)
    if body is None:
        return None
    found: dict[str, Any] = json.loads(body)
    return found
