"""Exact fractions written as numbers, and numbers read from what a tool gave back."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

_NUMERAL = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
_MAX_LENGTH = 400
_MAX_SIZE = 2**1000  # floats end at 2**1024


def as_json_number(value: Fraction) -> int | float:
    """An int where the value is whole, else the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)


def as_text(value: Fraction) -> str:
    """Whole numbers in full, others to ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def read_number(content: str) -> Fraction | None:
    """The number that a tool result means, or None: `391`, `{"result": 391}`, `The sum is 391.`

    Of an object the first of `result`, `value`, `answer`, `output` counts; of a text, its last
    number. What says `error`, and what is too large for a float, is no number.
    """
    if len(content) > _MAX_LENGTH:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    number = _number_in(value)
    return number if number is not None and abs(number) < _MAX_SIZE else None


def _number_in(value: object) -> Fraction | None:
    if isinstance(value, dict):
        if value.get("error") or value.get("is_error"):
            return None
        found = [value[key] for key in ("result", "value", "answer", "output") if key in value]
        return _number_in(found[0]) if found else None
    if isinstance(value, str):
        numerals = _NUMERAL.findall(value)
        return None if not numerals or "error" in value.lower() else Fraction(numerals[-1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value) if math.isfinite(value) else None
