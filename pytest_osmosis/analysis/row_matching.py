"""Which rows of two sessions are the same row.

By id (else by index) and by a digest of the content, so that an edited or shifted dataset is
noticed instead of compared. Knows no scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..escaping import counted
from .score_table import ScoreTable


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

    def __bool__(self) -> bool:
        """Whether any row matches."""
        return bool(self.pairs)


def match_rows(current: ScoreTable, baseline: ScoreTable) -> Matching:
    """Pair rows by key and digest; a digest that one side does not know is not compared."""
    there = {key: row for row, key in enumerate(_keys(baseline))}
    pairs, changed, added = [], [], []
    for row, key in enumerate(_keys(current)):
        other = there.pop(key, None)
        if other is None:
            added.append(current.row_names[row])
        elif _differ(_digest(current, row), _digest(baseline, other)):
            changed.append(current.row_names[row])
        else:
            pairs.append((row, other))
    removed = [baseline.row_names[row] for row in there.values()]
    return Matching(tuple(pairs), tuple(changed), tuple(added), tuple(removed))


def _keys(tally: ScoreTable) -> Sequence[str]:
    return tally.row_keys or tally.row_names


def _digest(tally: ScoreTable, row: int) -> str:
    return tally.row_digests[row] if tally.row_digests else ""


def _differ(one: str, other: str) -> bool:
    return bool(one) and bool(other) and one != other


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
