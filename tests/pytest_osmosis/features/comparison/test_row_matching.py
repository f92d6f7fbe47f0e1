"""Which rows of two sessions are the same, whatever names they share."""

from __future__ import annotations

import pytest

from pytest_osmosis.analysis.planned_rows import PlannedRows, row_key
from pytest_osmosis.features.comparison.row_matching import match_rows


def rows(*given: str) -> PlannedRows:
    """Rows as `id=content`; `=content` has no id, `id=` no digest that is known."""
    pairs = [text.partition("=")[::2] for text in given]
    return PlannedRows(
        indices=range(len(pairs)),
        names=[row_id or f"row-{index}" for index, (row_id, _) in enumerate(pairs)],
        keys=[row_key(index, row_id or None) for index, (row_id, _) in enumerate(pairs)],
        digests=[content for _, content in pairs],
    )


@pytest.mark.parametrize(
    ("here", "there", "pairs"),
    [
        (["a=1", "b=2"], ["b=2", "a=1"], {0: 1, 1: 0}),
        (["a=1", "a=2"], ["a=1", "a=2"], {0: 0, 1: 1}),
        (["a=1", "a=2"], ["a=2", "a=1"], {0: 1, 1: 0}),
        (["a=1", "a=1"], ["a=1", "a=1"], {0: 0, 1: 1}),
        (["a=1"], ["a=2", "a=1"], {0: 1}),
        (["a=", "a="], ["a=", "a="], {0: 0, 1: 1}),
        (["=1", "=1"], ["=1", "=1"], {0: 0, 1: 1}),
        (["=2", "=1", "=1"], ["=1", "=1"], {1: 1, 2: 0}),
        (["=1", "=2"], ["a=1", "b=2"], {0: 0, 1: 1}),
        (["row-1=1", "=2"], ["row-1=1", "=2"], {0: 0, 1: 1}),
        (["a=1"], ["b=2"], {}),
        (["a=1"], ["a=2"], {}),
    ],
)
def test_rows_are_paired_by_id_and_content(
    here: list[str], there: list[str], pairs: dict[int, int]
):
    assert dict(match_rows(rows(*here), rows(*there)).pairs) == pairs


def test_every_row_that_is_not_paired_is_named_once():
    found = match_rows(rows("a=1", "a=2", "b=3", "c=4"), rows("a=1", "b=9", "b=8", "d=5"))
    assert (found.changed, found.added, found.removed) == (("b",), ("a", "c"), ("b", "d"))
