"""What a platform of Osmosis asks of a dataset, beyond what an evaluation does.

At least 4 rows, at most 5 GB, the same fields in every row, integers within 64 bits, one type a
field, also of objects within it; null goes with any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..escaping import counted
from .decoding import brief, json_type

FEWEST_ROWS = 4
MOST_BYTES = 5 * 1024**3
_SHOWN = 5


def broken_rules(records: Iterable[Mapping[str, Any]], *, is_whole: bool, size: int) -> list[str]:
    """Return a sentence for each rule that a file breaks; of rows the first of each kind.

    `records` are its first rows, all of them where `is_whole`; `size` in bytes.
    """
    broken = []
    if size > MOST_BYTES:
        broken.append(f"it has {size:,} bytes; at most {MOST_BYTES:,} (5 GB) can be uploaded")
    first: Mapping[str, Any] | None = None
    kinds: dict[str, tuple[str, int]] = {}
    rows = 0
    for rows, record in enumerate(records, start=1):
        first = record if first is None else first
        broken += _of_fields(first, record, rows - 1)
        broken += _of_values(record, rows - 1, kinds)
        if len(broken) >= _SHOWN:
            break
    if is_whole and rows < FEWEST_ROWS and len(broken) < _SHOWN:
        broken.append(f"it has {counted(rows, 'row')}; at least {FEWEST_ROWS} can be uploaded")
    return broken


def _of_fields(first: Mapping[str, Any], record: Mapping[str, Any], row: int) -> Iterator[str]:
    lacking = [name for name in first if name not in record]
    besides = [name for name in record if name not in first]
    if lacking:
        yield f"row {row} has no {brief(lacking[0])}, which row 0 has: write null for nothing"
    elif besides:
        yield f"row {row} has {brief(besides[0])}, which row 0 has not: write null there"


def _of_values(
    record: Mapping[str, Any], row: int, kinds: dict[str, tuple[str, int]]
) -> Iterator[str]:
    for name, value in record.items():
        if _is_too_long(value):
            yield f"row {row}: {brief(name)} holds an integer beyond 64 bits: quote it"
        yield from _of_type(name, value, row, kinds)


def _of_type(path: str, value: Any, row: int, kinds: dict[str, tuple[str, int]]) -> Iterator[str]:
    """Look at the type of a value, and of those in the objects within it; `path` as people see."""
    if value is None:
        return
    kind = json_type(value)
    known, where = kinds.setdefault(path, (kind, row))
    if known != kind:
        yield f"{brief(path)} is {known} in row {where} and {kind} in row {row}"
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            inner = f"{path}[]" if each is not value else path
            for name, further in each.items():
                yield from _of_type(f"{inner}.{name}", further, row, kinds)


def _is_too_long(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_too_long, value.values()))
    if isinstance(value, list):
        return any(map(_is_too_long, value))
    return isinstance(value, int) and not -(2**63) <= value < 2**63
