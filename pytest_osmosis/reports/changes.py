"""What changed against a baseline, as lines of text in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..escaping import escape_control_chars
from .view import Against, Moved, Table, counted

ROWS_SHOWN = 10
WIDTH = 80


def lines(each: Against) -> Iterator[str]:
    """One eval function: the table, then the rows that broke and those that were mended."""
    title = f"{each.eval_fn}, {counted(each.rows, 'row')} compared"
    if each.is_unchanged:
        yield f"{title}: no difference"
        return
    yield title
    yield from (f"  {line}" for line in aligned(each.table))
    for what, rows in (("newly broken", each.broken), ("newly mended", each.mended)):
        if rows:
            yield ""
            yield f"  {what}: {counted(len(rows), 'row')}"
            yield from _moved(rows)


def aligned(table: Table) -> list[str]:
    """The table with its columns below each other."""
    rows = [table.header, *table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _moved(rows: Sequence[Moved]) -> Iterator[str]:
    for row in rows[:ROWS_SHOWN]:
        yield f"    {row.name}  {row.passes}"
        for label, answer in (("was", row.was), ("now", row.now)):
            if answer:
                yield f"      {label}  {_short(answer)}"
    if len(rows) > ROWS_SHOWN:
        yield f"    and {len(rows) - ROWS_SHOWN} more"


def _short(text: str) -> str:
    room = WIDTH - len("      was  ")
    flat = " ".join(escape_control_chars(text).split())
    return flat if len(flat) <= room else flat[: room - 2] + " …"
