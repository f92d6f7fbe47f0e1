"""Rows that somebody else has read: from a format of the user's own.

They are kept as JSON lines in a file without a name, so that a million of them are no Python
objects, and are checked and found again like any other rows. Knows no format.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Literal

from .errors import DatasetError, shown
from .jsonl import JsonlSource

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class RecordsSource(JsonlSource):
    """Records as a source of rows."""

    unit: Literal["line", "row"] = "row"

    def __init__(self, records: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
        super().__init__(_written(records, path), path)

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        for number, offset, line in super()._lines():
            yield number - 1, offset, line


def _written(records: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> BinaryIO:
    file = tempfile.TemporaryFile(buffering=1 << 18)  # noqa: SIM115 - the source closes it
    try:
        for number, record in enumerate(records):
            file.write(_line(record, number, path) + b"\n")
        file.flush()
    except BaseException:
        file.close()
        raise
    return file  # type: ignore[return-value]


def _line(record: object, number: int, path: str | os.PathLike[str]) -> bytes:
    try:
        return _encode(dict(record) if isinstance(record, Mapping) else record).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise DatasetError(
            f"{shown(path)}: row {number} (the first is row 0): cannot be written as JSON: {error}"
        ) from None
