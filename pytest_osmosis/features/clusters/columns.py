"""The values of a column by which rows belong together. Knows no files; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...dataset.columns import columns_shown
from ...dataset.decoding import brief, is_blank
from ...dataset.places import find_place
from ...escaping import counted

_NAMED = 5
"""Rows that a mistake names."""


class WrongColumn(ValueError):
    """Rows cannot belong together by the column; `str()` says why, and what to do."""


def clusters_of(
    column: str, indices: Iterable[int], records: Iterable[Mapping[str, Any]]
) -> dict[str, list[int]]:
    """Return the indices of the rows that have each value of a column, or place such as `meta.doc`.

    The rows are given as they stand in the file. Raises WrongColumn unless each has one value: a
    text, a number or a boolean.
    """
    clusters: dict[str, list[int]] = {}
    kinds: dict[str, type] = {}
    columns: dict[str, None] = {}
    missing, is_there = [], False
    for index, record in zip(indices, records, strict=True):
        columns.update(dict.fromkeys(record))
        value = value_at(column, record)
        if value is None or is_blank(value):
            is_there = is_there or _has(column, record)
            missing.append(index)
            continue
        is_there = True
        if not isinstance(value, (str, bool, int, float)):
            what = "a list" if isinstance(value, list) else "an object"
            raise WrongColumn(
                f"row {index} has {what} there; rows belong together by a text or a number"
            )
        text = text_of(value)
        if (kind := kinds.setdefault(text, _kind(value))) is not _kind(value):
            words = {str: "text", bool: "a boolean", float: "a number"}
            raise WrongColumn(
                f"{brief(text)} is {words[kind]} in row {clusters[text][0]} and "
                f"{words[_kind(value)]} in row {index}: write one and the same value alike"
            )
        clusters.setdefault(text, []).append(index)
    if not is_there:
        raise WrongColumn(f"no row has such a column ({columns_shown((*columns,), [column])})")
    if missing:
        named = ", ".join(map(str, missing[:_NAMED])) + (", …" if missing[_NAMED:] else "")
        row = "row" if len(missing) == 1 else "rows"
        raise WrongColumn(
            f"{counted(len(missing), 'row')} without a value ({row} {named}): give each one, or "
            f"leave them out with --osmosis-where {column}!="
        )
    return clusters


def value_at(column: str, record: Mapping[str, Any]) -> Any:
    """Return what a row has in a column, or at a place within one; None where nothing is."""
    if column in record:
        return record[column]
    place = find_place(column, record)
    return None if place is None else place.value(record)


def text_of(value: str | float) -> str:
    """Return the name of the cluster of a value: 1 and 1.0 are one number."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if value == int(value) else repr(value)


def _kind(value: object) -> type:
    return type(value) if isinstance(value, (str, bool)) else float


def _has(column: str, record: Mapping[str, Any]) -> bool:
    return column in record or find_place(column, record) is not None


def looks_like_clusters(values: Sequence[Any], rows: int) -> bool:
    """Return whether a column says what belongs together, by its values in all rows.

    At least five values, each at most in half of the rows, most of them more than once.
    """
    if not all(isinstance(value, (str, int)) and not isinstance(value, bool) for value in values):
        return False
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    several = sum(count > 1 for count in counts.values())
    return len(counts) >= 5 and max(counts.values()) * 2 <= rows and several * 2 > len(counts)
