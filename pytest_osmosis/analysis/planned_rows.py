"""The rows of an evaluation, with those that never ran among them, and the values of their columns.

Knows no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..dataset.dataset import Dataset
    from ..suite_results import SuiteResult


@dataclass(frozen=True)
class PlannedRows:
    """The rows of an evaluation, whether they have run or not."""

    indices: Sequence[int]
    """Position in the data file of each."""
    names: Sequence[str]
    """As people see them."""
    keys: Sequence[str]
    """What identifies each in another session: its id, else its index."""
    digests: Sequence[str]
    """Of each row's content; "" where it is not known."""
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Every column's name; values only of those that were asked for."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.indices)

    @cached_property
    def place_of(self) -> Mapping[int, int]:
        """Where the row of each index stands."""
        return {index: place for place, index in enumerate(self.indices)}

    def places(self, indices: Iterable[int]) -> list[int]:
        """Return where the rows of these indices stand, in their order here."""
        return sorted(self.place_of[index] for index in set(indices) if index in self.place_of)

    def take(self, places: Iterable[int]) -> PlannedRows:
        """Return the rows at these places."""
        at = list(places)
        parts = (
            [column[place] for place in at]
            for column in (self.indices, self.names, self.keys, self.digests)
        )
        return PlannedRows(*parts)  # type: ignore[arg-type]

    def where(self, column: str, value: str) -> tuple[int, ...]:
        """Return the indices of the rows whose column (in any case) reads as the value.

        A number matches when it is equal, true, false and null as they are in JSON. Raises KeyError
        when there is no such column.
        """
        values = self.columns[match_column(self.columns, column)]
        return tuple(
            index for index, each in zip(self.indices, values, strict=True) if reads_as(each, value)
        )


def planned(dataset: Dataset, columns: Iterable[str] = ()) -> PlannedRows:
    """The rows of a dataset; the values of `columns` (in any case) are read, row by row."""
    indices = list(dataset.row_indices)
    ids = [(index, dataset.row_id(index)) for index in indices]
    wanted = list(columns)
    return PlannedRows(
        indices=indices,
        names=[known or dataset.row_name(index) for index, known in ids],
        keys=[row_key(index, known) for index, known in ids],
        digests=[dataset.row_digest(index) for index in indices],
        columns=_columns(dataset, wanted) if wanted else {},
    )


def row_key(row_index: int, row_id: str | None) -> str:
    """What identifies a row: its id, else its index in a form that no id has."""
    return f"#{row_index}" if row_id is None else f"id {row_id}"


def has_no_id(key: str) -> bool:
    """Whether this is the key of a row without an id."""
    return key.startswith("#")


def match_column(columns: Mapping[str, object], name: str) -> str:
    """The column of that name, without regard to case; KeyError when there is none."""
    if name in columns:
        return name
    for column in columns:
        if column.casefold() == name.casefold():
            return column
    raise KeyError(name)


def reads_as(value: object, text: str) -> bool:
    """Whether a dataset value is what `text` says.

    >>> [reads_as(v, t) for v, t in [(3, "3.0"), (True, "true"), (None, "null"), ("3", "3.0")]]
    [True, True, True, False]
    """
    if value is None or isinstance(value, bool):
        return written(value) == text.casefold()
    if isinstance(value, (int, float)):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value) == text


def written(value: object) -> str:
    """A dataset value as `reads_as` takes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def with_digests(suite: SuiteResult, rows: PlannedRows) -> SuiteResult:
    """The suite, each row with the digest of its content."""
    digests = dict(zip(rows.indices, rows.digests, strict=True))
    return replace(
        suite,
        rows=tuple(replace(row, digest=digests.get(row.row_index, "")) for row in suite.rows),
    )


def with_columns(rows: PlannedRows, wanted: Iterable[str]) -> PlannedRows:
    """The rows, each wanted column that none of them has being null in all."""
    absent = [name for name in wanted if not _is_among(name, rows.columns)]
    nulls = {name: [None] * len(rows.indices) for name in absent}
    return replace(rows, columns={**rows.columns, **nulls})


def ran(suite: SuiteResult) -> PlannedRows:
    """The rows of which a run has ended: all that a report holds."""
    return PlannedRows(
        indices=[row.row_index for row in suite.rows],
        names=[row.row_id or f"row-{row.row_index}" for row in suite.rows],
        keys=[row_key(row.row_index, row.row_id) for row in suite.rows],
        digests=[row.digest for row in suite.rows],
    )


def _columns(dataset: Dataset, wanted: Sequence[str]) -> dict[str, Sequence[object]]:
    """Values of the wanted columns; null where a row has none. Of the others, the names."""
    rows = [dataset.row(row_index).metadata() for row_index in dataset.row_indices]
    names = dict.fromkeys(name for row in rows for name in row)
    read = {match_column(names, name) for name in wanted if _is_among(name, names)}
    return {name: [row.get(name) for row in rows] if name in read else () for name in names}


def _is_among(name: str, names: Iterable[str]) -> bool:
    return any(name.casefold() == other.casefold() for other in names)
