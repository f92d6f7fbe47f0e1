"""What the file of a new dataset, and the value of a secret, may be."""

from __future__ import annotations

from pytest_osmosis.dataset.formats import SUFFIXES, SUFFIXES_SHOWN

from ..errors import Refused
from .validation import refused_fields

NAME_BYTES = 255


def is_file_name(text: str) -> bool:
    """Return whether it is the name of a file, and no path."""
    is_path = "/" in text or "\\" in text or text.startswith(".")
    return not is_path and text.isprintable() and len(text.encode("utf-8", "replace")) <= NAME_BYTES


def checked_extension(text: str) -> str:
    """Return an extension without its dot, in lower case; refuse one of no known format."""
    extension = text.removeprefix(".").lower()
    if f".{extension}" not in SUFFIXES:
        raise refused_fields([("extension", f"must be one of {SUFFIXES_SHOWN}")])
    return extension


def check_size(size: int, limit: int) -> None:
    """Refuse a file that is too large."""
    if size > limit:
        told = f"file_size: a dataset has at most {limit:,} bytes"
        raise Refused(413, "too_large", told, field="file_size")


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
