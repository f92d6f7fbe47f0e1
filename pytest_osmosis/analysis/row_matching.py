"""Which rows of two sessions are the same row.

By id (else by index) and by a digest of the content, so that an edited or shifted dataset is
noticed instead of compared. Knows no scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..escaping import counted
from .planned_rows import PlannedRows


@dataclass(frozen=True, slots=True)
class Matching:
    """Rows of this session beside their rows in the baseline."""

    pairs: tuple[tuple[int, int], ...]
    """(row here, row there), in this session's order."""
    changed: tuple[str, ...]
    """Names of rows whose id or index is in both, with different content."""
    added: tuple[str, ...]
    """Names of rows that only this session has."""
    removed: tuple[str, ...]
    """Names of rows that only the baseline has."""

    def notes(self) -> list[str]:
        """One sentence for each kind of row that is not compared; none when all are."""
        kinds = (
            (self.changed, "changed since the baseline and"),
            (self.added, "not in the baseline and"),
            (self.removed, "only in the baseline and"),
        )
        return [
            f"{counted(len(names), 'row')} {'is' if len(names) == 1 else 'are'} {what} "
            f"not compared: {_some(names)}"
            for names, what in kinds
            if names
        ]


def match_rows(current: PlannedRows, baseline: PlannedRows) -> Matching:
    """Pair rows by key and digest; a digest that one side does not know is not compared."""
    there = {key: row for row, key in enumerate(baseline.keys)}
    pairs, changed, added = [], [], []
    for row, key in enumerate(current.keys):
        other = there.pop(key, None)
        if other is None:
            added.append(current.names[row])
        elif _differ(current.digests[row], baseline.digests[other]):
            changed.append(current.names[row])
        else:
            pairs.append((row, other))
    removed = [baseline.names[row] for row in there.values()]
    return Matching(tuple(pairs), tuple(changed), tuple(added), tuple(removed))


def _differ(one: str, other: str) -> bool:
    return bool(one) and bool(other) and one != other


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
