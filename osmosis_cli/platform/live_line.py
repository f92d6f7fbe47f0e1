"""A line that is replaced by the next on a terminal, and stands where there is none."""

from __future__ import annotations

import os
import sys

import click

from ..eval.lines import say


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

        cut = line[: get_terminal_size().columns - 1]
        click.echo(f"\r{cut.ljust(self._width)}", nl=False, err=True)
        self._width = len(cut)
