"""Tables and sentences as lines of text, within the width of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from textwrap import wrap


def columns() -> int | None:
    """Return the width of the terminal; None where standard output is none."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(line: str, width: int | None, *, below: int = 2) -> list[str]:
    """Return a line, broken between words; what follows is indented by `below`."""
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (below if width - below >= 30 else 4)
    return wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


def table(
    rows: Sequence[Sequence[str]],
    width: int | None,
    *,
    least_first: Sequence[str] = (),
    numbers: bool = False,
    shortest: int | None = None,
) -> Iterator[str]:
    """Yield a table below its header; where it is too wide, a few lines for each row instead.

    Before that, it does without the columns `least_first`, in this order, as far as needed, and the
    names of the first column lose their middle, down to `shortest` characters. With `numbers` all
    columns but the first are flush right.
    """
    header = rows[0]
    kept = list(range(len(header)))
    for dropped in (None, *least_first):
        if dropped is not None:
            kept.remove(header.index(dropped))
        shown = [[row[place] for place in kept] for row in rows]
        over = 0 if width is None else max(map(len, _aligned(shown, numbers=numbers))) - width
        longest = max(len(row[0]) for row in rows)
        if over <= 0 or (shortest is not None and longest - over >= shortest):
            most = longest - max(0, over)
            named = [[_elided(name, most), *cells] for name, *cells in shown]
            yield from _aligned(named, numbers=numbers)
            return
    for name, *cells in rows[1:]:
        yield name
        words = [f"{title} {cell}" for title, cell in zip(header[1:], cells, strict=True) if cell]
        yield from wrapped("  " + ", ".join(words), width)


def _elided(name: str, most: int) -> str:
    """Return a name of at most so many characters, of which more are from its end."""
    return name if len(name) <= most else f"{name[: most // 3]}...{name[most // 3 + 3 - most :]}"


def _aligned(rows: Sequence[Sequence[str]], *, numbers: bool) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(size) if numbers and place else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
