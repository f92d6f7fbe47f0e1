"""Which rows of two sessions are the same row.

By id and a digest of the content, so that an edited row is noticed instead of compared; without ids
by the content, wherever in the data it stands. Knows no scores.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from ..escaping import counted
from .planned_rows import PlannedRows, has_no_id


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
    """Pair rows by key and digest, then those without an id by digest alone, in order.

    A digest that one side does not know is not compared.
    """
    there = {key: row for row, key in enumerate(baseline.keys)}
    pairs: dict[int, int] = {}
    for row, key in enumerate(current.keys):
        other = there.get(key)
        if other is not None and not _differ(current.digests[row], baseline.digests[other]):
            pairs[row] = there.pop(key)
    moved: defaultdict[str, deque[str]] = defaultdict(deque)
    for key, other in there.items():
        if has_no_id(key):
            moved[baseline.digests[other]].append(key)
    for row, (key, digest) in enumerate(zip(current.keys, current.digests, strict=True)):
        if row not in pairs and has_no_id(key) and digest and moved[digest]:
            pairs[row] = there.pop(moved[digest].popleft())
    changed: list[str] = []
    added: list[str] = []
    for row, (key, name) in enumerate(zip(current.keys, current.names, strict=True)):
        if row not in pairs:
            (added if there.pop(key, None) is None else changed).append(name)
    removed = [baseline.names[row] for row in there.values()]
    return Matching(tuple(sorted(pairs.items())), tuple(changed), tuple(added), tuple(removed))


def _differ(one: str, other: str) -> bool:
    return bool(one) and bool(other) and one != other


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
