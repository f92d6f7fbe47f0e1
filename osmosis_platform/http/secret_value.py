"""What the value of a secret may be."""

from __future__ import annotations

from .validation import refused_fields


def check_value(value: str, limit: int) -> None:
    """Refuse a value that no variable of an environment can hold."""
    if not value:
        raise refused_fields([("value", "is empty")])
    if "\0" in value:
        raise refused_fields([("value", "has a NUL character")])
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise refused_fields([("value", "is not valid Unicode")]) from None
    if size > limit:
        raise refused_fields([("value", f"has more than {limit:,} bytes")])
