"""The rows of an evaluation, with those that never ran among them.

Knows no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..dataset.dataset import Dataset
    from ..run_result import SuiteInfo
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

    def __len__(self) -> int:
        """How many there are."""
        return len(self.indices)

    @cached_property
    def place_of(self) -> Mapping[int, int]:
        """Where the row of each index stands."""
        return {index: place for place, index in enumerate(self.indices)}

    def deciding(self, info: SuiteInfo) -> PlannedRows:
        """Return the rows that figures are of: those in quarantine are left out."""
        aside = set(info.settings.get("quarantine", ()))
        if aside.isdisjoint(self.names):
            return self
        return self.take(at for at, name in enumerate(self.names) if name not in aside)

    def take(self, places: Iterable[int]) -> PlannedRows:
        """Return the rows at these places."""
        at = list(places)
        parts = (
            [column[place] for place in at]
            for column in (self.indices, self.names, self.keys, self.digests)
        )
        return PlannedRows(*parts)  # type: ignore[arg-type]


def planned(dataset: Dataset) -> PlannedRows:
    """The rows of a dataset."""
    indices = list(dataset.row_indices)
    ids = [(index, dataset.row_id(index)) for index in indices]
    return PlannedRows(
        indices=indices,
        names=[known or dataset.row_name(index) for index, known in ids],
        keys=[row_key(index, known) for index, known in ids],
        digests=[dataset.row_digest(index) for index in indices],
    )


def row_key(row_index: int, row_id: str | None) -> str:
    """What identifies a row: its id, else its index in a form that no id has."""
    return f"#{row_index}" if row_id is None else f"id {row_id}"


def with_digests(suite: SuiteResult, rows: PlannedRows) -> SuiteResult:
    """The suite, each row with the digest of its content."""
    digests = dict(zip(rows.indices, rows.digests, strict=True))
    return suite.with_rows(lambda row: replace(row, digest=digests.get(row.row_index, "")))


def ran(suite: SuiteResult) -> PlannedRows:
    """The rows of which a run has ended: all that a report holds."""
    return PlannedRows(
        indices=[row.row_index for row in suite.rows],
        names=[row.row_id or f"row-{row.row_index}" for row in suite.rows],
        keys=[row_key(row.row_index, row.row_id) for row in suite.rows],
        digests=[row.digest for row in suite.rows],
    )
