"""What a comparison says in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...escaping import counted, escape_control_chars, shortened
from ...reports.summary import COLUMNS, fitted, indented

if TYPE_CHECKING:
    from .results import BaselineReport, Change, Comparison

CHANGED_SHOWN = 10
"""Rows that differ from the baseline which the terminal names."""


def lines_of(report: BaselineReport, width: int) -> Iterator[str]:
    """Yield the lines of a comparison in the terminal's summary."""
    yield from indented(f"against the baseline {report.source}", width)
    for note in report.notes:
        yield from indented(note, width, "  ")
    for comparison in report.comparisons:
        yield from changes(comparison, width=width)
    yield ""


def changes(each: Comparison, *, width: int = COLUMNS) -> Iterator[str]:
    """Yield the lines about one eval function against a baseline: the table, then the rows."""
    title = f"{each.eval_fn}, {counted(each.rows, 'row')} compared"
    if each.is_unchanged:
        yield from indented(f"{title}: no difference", width)
        return
    yield from indented(title, width)
    yield from (f"  {line}" for line in fitted(each.table, width - 2))
    if each.changes:
        yield ""
        yield from indented(f"rows: {each.counts}", width, "  ")
        yield from _moved(each.changes, width)
        yield from indented(each.rule, width, "  ")


def _moved(rows: Sequence[Change], width: int) -> Iterator[str]:
    for row in rows[:CHANGED_SHOWN]:
        name = shortened(" ".join(row.name.split()))
        yield f"    {row.verdict:<9}  {name}  {row.figures}"
        for label, answer in (("baseline", row.baseline_answer), ("current", row.answer)):
            if answer:
                yield f"      {label:<8}  {_short(answer, width)}"
    if len(rows) > CHANGED_SHOWN:
        yield f"    and {len(rows) - CHANGED_SHOWN} more"


def _short(text: str, width: int) -> str:
    room = width - len("      baseline  ")
    flat = " ".join(escape_control_chars(text).split())
    return flat if len(flat) <= room else flat[: room - len(" ...")].rstrip() + " …"
