"""How the batch size is divided, over workers (`scheduler`) and shards (`shards/plan`). Pure."""

from __future__ import annotations


def shares(total: int, parts: int) -> list[int]:
    """Return so many shares that sum to exactly the total, the larger ones first.

    >>> shares(8, 3), shares(2, 3), shares(8, 0)
    ([3, 3, 2], [1, 1, 0], [])
    """
    return [total // parts + (place < total % parts) for place in range(parts)]
