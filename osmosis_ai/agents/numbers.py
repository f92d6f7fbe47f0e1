"""The check that every reward and score passes: a finite number."""

from __future__ import annotations

import math
from typing import Any


def finite_number(value: Any, what: str) -> float:
    """Return `value` (a number, a bool or a numpy scalar) as a finite float, else ValueError."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return number
