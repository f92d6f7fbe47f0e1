"""One JSON text to one object, strictly.

What would be changed in silence, or break a report later, is refused. Knows JSON; does not know
which columns a row needs, nor where the text stood.
"""

from __future__ import annotations

import json
import math
from typing import Any

from .errors import NotJson, RecordError

DEEPEST = 200
"""Levels of nesting that every later step (copies, reports, workers) can walk."""


def decode(raw: bytes) -> dict[str, Any]:
    """The object that `raw` holds; RecordError says why it cannot be used."""
    try:
        text = raw.decode()
        record = _strict(text)
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise RecordError(
            f"not UTF-8 (byte 0x{byte:02x} at column {error.start + 1}): save the file as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error.msg} (column {error.pos + 1})") from None
    except RecursionError:
        raise RecordError(f"nested too deeply (more than {DEEPEST} levels)") from None
    except ValueError:
        # The one plain ValueError of json.loads: an integer beyond Python's digit limit.
        raise RecordError("holds a number with too many digits; quote it") from None
    if "\\ud" in text or "\\uD" in text:
        _refuse_surrogates(record)
    if text.count("[") + text.count("{") > DEEPEST:
        _refuse_depth(record)
    if type(record) is not dict:
        raise RecordError(f"is {json_type(record)}; expected an object with named columns")
    return record


def decode_checked(raw: bytes) -> dict[str, Any]:
    """The object of bytes that `decode` accepts, which is taken for granted.

    Of others, those that hold no object are a RecordError; the rest is not noticed.
    """
    try:
        record = _plain(raw.decode())
    except (ValueError, RecursionError):
        raise NotJson("not JSON") from None
    if type(record) is not dict:
        raise RecordError(f"is {json_type(record)}; expected an object with named columns")
    return record


def decode_numbers(raw: bytes) -> dict[str, Any]:
    """Return a record that was decoded before, with its numbers as they are written."""
    record: dict[str, Any] = json.loads(raw, parse_float=str, parse_int=str)
    return record


def json_type(value: object) -> str:
    """How JSON calls the type of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list"


def is_blank(value: object) -> bool:
    """Return whether a value says nothing: null, blanks, an empty object, a list of such."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, list):
        return all(map(is_blank, value))
    return value is None or value == {}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RecordError(f"the key {brief(key)} is there twice")
            seen.add(key)
    return record


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise RecordError(f"{brief(digits, quoted=False)} is beyond the range of numbers; quote it")
    return number


def _refused_constant(name: str) -> None:
    raise RecordError(f"{name} is not JSON; use null or a string")


def _refuse_surrogates(record: Any) -> None:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise RecordError(
            f"holds half a character (\\u{code:04x}, a lone surrogate), which no file can store"
        ) from None


def _refuse_depth(record: Any) -> None:
    level = [record]
    for _ in range(DEEPEST):
        level = [
            child
            for value in level
            if isinstance(value, (dict, list))
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise RecordError(f"nested too deeply (more than {DEEPEST} levels)")


def brief(text: str, *, quoted: bool = True, longest: int = 40) -> str:
    """A piece of the user's data, short and printable, for a message."""
    short = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return repr(short) if quoted or not short.isprintable() else short


_strict = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refused_constant
).decode
_plain = json.JSONDecoder().decode
