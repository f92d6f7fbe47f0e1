"""Lines on standard output: in its encoding, and within the width of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from textwrap import wrap

import click

from pytest_osmosis.reports.line_markup import as_ascii


def say(line: str, *, err: bool = False) -> None:
    """Print a line; where the encoding lacks a character, its ASCII or its escape stands."""
    # without a file click takes ASCII for a mistake and prints UTF-8
    click.echo(line if _can_print("…→") else as_ascii(line), file=sys.stderr if err else sys.stdout)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


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
    rows: Sequence[Sequence[str]], width: int | None, *, least_first: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a table below its header; where it is too wide, a few lines for each row instead.

    Before that, it does without the columns `least_first`, in this order, as far as needed.
    """
    header = rows[0]
    kept = list(range(len(header)))
    for dropped in (None, *least_first):
        if dropped is not None:
            kept.remove(header.index(dropped))
        lines = _aligned([[row[place] for place in kept] for row in rows])
        if width is None or max(map(len, lines)) <= width:
            yield from lines
            return
    for name, *cells in rows[1:]:
        yield name
        told = [f"{title} {cell}" for title, cell in zip(header[1:], cells, strict=True) if cell]
        yield from wrapped("  " + ", ".join(told), width)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def size_text(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
