"""Which rows of two sessions are the same row.

By id and a digest of the content, so that an edited row is noticed instead of compared; else by the
content, wherever in the data it stands. Knows no scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...analysis.planned_rows import PlannedRows
from ...escaping import counted


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
    """Pair rows by key, then those that are left by digest alone, in order.

    Several rows may have one key: ids are unique in what one session ran, not in what was joined.
    Rows whose digests differ are no pair; one that a side does not know differs from none.
    """
    left = dict.fromkeys(range(len(baseline)))
    rows = range(len(current))

    def differs(row: int, other: int) -> bool:
        here, there = current.digests[row], baseline.digests[other]
        return bool(here) and bool(there) and here != there

    pairs = _paired(rows, current.keys, left, baseline.keys, unless=differs)
    others = [row for row in rows if row not in pairs and current.digests[row]]
    pairs |= _paired(others, current.digests, left, baseline.digests, unless=differs)
    others = [row for row in rows if row not in pairs]
    changed = _paired(others, current.keys, left, baseline.keys)
    return Matching(
        tuple(sorted(pairs.items())),
        tuple(current.names[row] for row in changed),
        tuple(current.names[row] for row in others if row not in changed),
        tuple(baseline.names[other] for other in left),
    )


def _paired(
    rows: Iterable[int],
    texts: Sequence[str],
    left: dict[int, None],
    theirs: Sequence[str],
    *,
    unless: Callable[[int, int], bool] = lambda row, other: False,
) -> dict[int, int]:
    """Pair each row with the first one `left` that has its text, and take that out."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place in left:
        places[theirs[place]].append(place)
    pairs = {}
    for row in rows:
        same = places[texts[row]]
        other = next((each for each in same if not unless(row, each)), None)
        if other is not None:
            pairs[row] = other
            same.remove(other)
            del left[other]
    return pairs


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
