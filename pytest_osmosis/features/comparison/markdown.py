"""What a comparison says in the Markdown report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...escaping import counted
from ..markdown.report import ANSWER_SHOWN, NAMES_SHOWN, code, escaped, table

if TYPE_CHECKING:
    from .results import BaselineReport, Change, Comparison


def markdown_of(report: BaselineReport) -> Iterator[str]:
    """Yield the lines of a comparison in the Markdown report."""
    yield from ["", f"#### Against the baseline {code(report.title)}"]
    if report.notes:
        yield ""
        yield from (f"- {escaped(note)}" for note in report.notes)
    for each in report.comparisons:
        yield from _in_markdown(each)


def _in_markdown(each: Comparison) -> Iterator[str]:
    yield ""
    if each.is_unchanged:
        yield f"{code(each.eval_fn)} over {counted(each.rows, 'row')}: no difference"
    else:
        yield from [f"{code(each.eval_fn)} over {counted(each.rows, 'row')}", ""]
        yield from table(each.table)
    if rows := each.changes:
        yield from ["", f"Rows: {escaped(each.counts)}", ""]
        yield from (_item(row) for row in rows[:NAMES_SHOWN])
        if len(rows) > NAMES_SHOWN:
            yield f"- and {len(rows) - NAMES_SHOWN} more"
        yield from ["", escaped(each.rule)]


def _item(row: Change) -> str:
    said = [
        f"{label} {code(answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + ' …')}"
        for label, answer in (("baseline", row.baseline_answer), ("current", row.answer))
        if answer
    ]
    found = f"- {row.verdict}: {code(row.name)} {escaped(row.figures)}"
    return found + (f": {', '.join(said)}" if said else "")
