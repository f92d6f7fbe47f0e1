"""A part of the selected rows, so that several machines evaluate one dataset.

Pure: knows numbers only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHARD = re.compile(r"(?P<number>[0-9]{1,9})\s*/\s*(?P<count>[0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of a selection, numbered from 1: every count-th row."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, rows: int) -> range:
        """Positions in a selection of so many rows."""
        return range(self.number - 1, rows, self.count)


def parse_shard(text: str) -> Shard:
    """The shard that "2/4" names; ValueError when it names none."""
    found = _SHARD.fullmatch(text.strip())
    if found is not None and 1 <= (number := int(found["number"])) <= int(found["count"]):
        return Shard(number, int(found["count"]))
    raise ValueError("expected I/K, such as 2/4 for the second of four shards")
