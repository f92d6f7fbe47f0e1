"""Lines on standard output, in its encoding; and one that the next replaces on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from osmosis_ai.escaping import printable
from osmosis_ai.secret import redact
from pytest_osmosis.escaping import can_write, escape_control_chars
from pytest_osmosis.reports.line_markup import Style, as_ascii, coloured
from pytest_osmosis.reports.text_table import columns, table, wrapped

_STYLES: Mapping[Style, Mapping[str, Any]] = {
    "plain": {},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "doubt": {"fg": "yellow"},
    "strong": {"bold": True},
    "dim": {"dim": True},
}


def say(*parts: str | tuple[str, Style], err: bool = False) -> None:
    """Print a line without secrets or control characters; a part may be a text and its style.

    A line without styles has those of the session's terminal. Where the encoding lacks a character,
    its ASCII or its escape stands.
    """
    styled: list[tuple[str, Style]] = []
    for part in parts:
        if isinstance(part, tuple):
            styled.append((_harmless(part[0]), part[1]))
        else:
            styled += coloured(_harmless(part))
    text = "".join(
        click.style(part, **_STYLES[style], reset=style != "plain") for part, style in styled
    )
    # without a file click takes ASCII for a mistake and prints UTF-8
    click.echo(text, file=sys.stderr if err else sys.stdout)


def _harmless(text: str) -> str:
    line = escape_control_chars(redact(text))
    return line if can_write("…→", sys.stdout.encoding or "utf-8") else as_ascii(line)


def tell(line: str) -> None:
    """Print a line on standard error."""
    say(line, err=True)


def say_facts(facts: Mapping[str, str]) -> None:
    """Print one indented line for each fact, its name before it."""
    width = max(map(len, facts))
    for name, text in _printable(facts.items()):
        for line in wrapped(f"  {name:<{width}}  {text}", columns(), below=width + 4):
            say(line)


def say_table(rows: Sequence[Sequence[str]], **fit: Any) -> None:
    """Print a table below its header, as `table` fits it into the terminal."""
    for number, line in enumerate(table(_printable(rows), columns(), **fit)):
        is_header = number == 0 and line.startswith(rows[0][0])
        say((line, "strong" if is_header else "plain"))


def _printable(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[printable(cell) for cell in row] for row in rows]


def when_text(at: float, *, seconds: bool = False) -> str:
    """Return the local time of a moment, to the minute or the second."""
    try:
        return time.strftime(f"%Y-%m-%d %H:%M{':%S' if seconds else ''}", time.localtime(at))
    except (OverflowError, ValueError, OSError):  # a report may say anything
        return "at no known time"


def size_text(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


@contextmanager
def progress_bar(
    length: int, label: str, *, is_silent: bool = False
) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, where that is a terminal that moves its cursor."""
    is_plain = any(os.environ.get(name) for name in ("NO_COLOR", "CI"))
    if is_silent or is_plain or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda count: None
        return
    with click.progressbar(length=max(length, 1), label=printable(label), file=sys.stderr) as bar:
        yield bar.update


class LiveLine:
    """Shows on standard error what is going on; a context manager, which leaves no line behind.

    Where standard error is no terminal, a line is printed when its topic is a new one.
    """

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._is_live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._width = 0
        self._topic: str | None = None

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, line: str, topic: str) -> None:
        """Show a line; `topic` is what it is about."""
        if self._is_silent:
            return
        if self._is_live:
            self._draw(line)
        elif topic != self._topic:
            say(line, err=True)
        self._topic = topic

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            self._draw("")
            click.echo("\r", nl=False, err=True)

    def _draw(self, line: str) -> None:
        from shutil import get_terminal_size

        cut = printable(redact(line))[: get_terminal_size().columns - 1]
        click.echo(f"\r{cut.ljust(self._width)}", nl=False, err=True)
        self._width = len(cut)
