"""Lines on standard output, in its encoding."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import click

from pytest_osmosis.reports.line_markup import as_ascii
from pytest_osmosis.reports.text_table import columns, table, wrapped


def say(line: str, *, err: bool = False) -> None:
    """Print a line; where the encoding lacks a character, its ASCII or its escape stands."""
    # without a file click takes ASCII for a mistake and prints UTF-8
    click.echo(line if _can_print("…→") else as_ascii(line), file=sys.stderr if err else sys.stdout)


def tell(line: str) -> None:
    """Print a line on standard error."""
    say(line, err=True)


def say_facts(facts: Mapping[str, str]) -> None:
    """Print one indented line for each fact, its name before it."""
    width = max(map(len, facts))
    for name, text in facts.items():
        for line in wrapped(f"  {name:<{width}}  {text}", columns(), below=width + 4):
            say(line)


def say_table(rows: Sequence[Sequence[str]], *, least_first: Sequence[str] = ()) -> None:
    """Print a table below its header."""
    for line in table(rows, columns(), least_first=least_first):
        say(line)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def when_text(at: float) -> str:
    """Return the local time of a moment, to the minute."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):  # a report may say anything
        return "at no known time"


def size_text(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
