"""Which rows are taken: a window of the file, a random sample of that window, or named ones.

Pure: knows numbers only. The same arguments always give the same rows.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..escaping import counted
from .errors import DatasetError, quote

Selection = Sequence[int]
"""Row numbers from 0, ascending."""
MOST_NAMED = 1_000_000
"""Rows that may be named one by one: beyond them, a window or a sample is meant."""
_RANGE = re.compile(r"(?P<first>[0-9]{1,12})(\s*-\s*(?P<last>[0-9]{1,12}))?")
_SAMPLE = re.compile(r"(?P<number>[0-9]{1,12}(\.[0-9]{1,12})?)(?P<percent>%?)")


def window(offset: int, limit: int | None) -> tuple[int, int | None]:
    """Start and stop of the rows that offset and limit leave; a stop of None is the file's end."""
    if offset < 0:
        raise DatasetError(f"the offset is {offset}; expected 0 or more")
    if limit is not None and limit < 0:
        raise DatasetError(f"the limit is {limit}; expected 1 or more")
    return offset, None if limit is None else offset + limit


def sample_size(sample: str, available: int) -> int:
    """How many of `available` rows a sample of "10%" or "50" takes: at least one, at most all."""
    found = _SAMPLE.fullmatch(sample.strip())
    if found is None:
        raise _wrong(sample)
    from fractions import Fraction

    number = Fraction(found["number"])
    if found["percent"]:
        if not 0 < number <= 100:
            raise _wrong(sample)
        return min(available, max(1, round(available * number / 100)))
    if number < 1 or number.denominator != 1:
        raise _wrong(sample)
    return min(available, int(number))


def draw(sample: str, seed: int, rows: Selection) -> Selection:
    """The sampled rows of those given, ascending."""
    from random import Random  # its own generator: the session's random state stays untouched

    taken = Random(seed).sample(range(len(rows)), sample_size(sample, len(rows)))
    return array("q", (rows[place] for place in sorted(taken)))


def parse_rows(text: str) -> Selection:
    """Return the rows that "3,7,10-20" names, ascending and each once; ValueError if it is wrong.

    Both ends of a range belong to it.
    """
    named: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        first = -1 if found is None else int(found["first"])
        last = first if found is None else int(found["last"] or first)
        if found is None or last < first:
            raise ValueError(
                f"{part.strip()!r} is not a row; expected row indices such as 3,7,10-20 "
                "(the first row is 0)"
            )
        if last - first >= MOST_NAMED or len(named) > MOST_NAMED:
            raise ValueError(f"expected at most {MOST_NAMED:,} rows: offset and limit take more")
        named.update(range(first, last + 1))
    return array("q", sorted(named))


def as_text(rows: Sequence[int]) -> str:
    """Return the text that names these rows, which are ascending: "3,7,10-20"."""
    parts: list[list[int]] = []
    for row in rows:
        if parts and parts[-1][-1] == row - 1:
            parts[-1][1:] = [row]
        else:
            parts.append([row])
    return ",".join("-".join(map(str, part)) for part in parts)


def refuse_missing(named: Selection, found: int, path: Path, rows_total: int | None) -> None:
    """Raise DatasetError unless all the named rows, of which the first were found, are there."""
    if found < len(named):
        rows = "fewer rows" if rows_total is None else counted(rows_total, "row")
        raise DatasetError(
            f"{quote(path)}: has {rows}; there is no row {named[found]} (the first row is 0)"
        )


def place_in(selection: Selection) -> Callable[[int], int]:
    """Return what tells where a row number stands in a selection; ValueError: nowhere."""
    if isinstance(selection, range):
        return selection.index

    def place(row: int) -> int:
        found = bisect_left(selection, row)
        if found == len(selection) or selection[found] != row:
            raise ValueError(f"row {row} is not selected")
        return found

    return place


def _wrong(sample: str) -> DatasetError:
    return DatasetError(
        f"the sample is {sample!r}; expected a share like 10% or a number of rows like 50"
    )


_PART = re.compile(r"(?P<number>[0-9]{1,9})\s*/\s*(?P<count>[0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Part:
    """One of `count` parts of a selection, numbered from 1: every count-th row."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, rows: int) -> range:
        """Positions in a selection of so many rows."""
        return range(self.number - 1, rows, self.count)


def parse_part(text: str) -> Part:
    """Return the part that "2/4" names; raise ValueError when it names none."""
    found = _PART.fullmatch(text.strip())
    if found is not None and 1 <= (number := int(found["number"])) <= int(found["count"]):
        return Part(number, int(found["count"]))
    raise ValueError("expected I/K, such as 2/4 for the second of four shards")
