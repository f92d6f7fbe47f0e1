"""A line that is replaced by the next on a terminal, and stands where there is none."""

from __future__ import annotations

import os
import sys
import time
from itertools import cycle

import click

from ..eval.lines import say

_FRAME_S = 0.12


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


class Spinner(LiveLine):
    """A clock whose sleep draws a line, while a user is in the browser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._frames = cycle("|/-\\")

    def __enter__(self) -> Spinner:
        self.show(self._text, self._text)  # all that is seen where there is no terminal
        return self

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            self.show(f"{next(self._frames)} {self._text}", self._text)
            time.sleep(min(left, _FRAME_S))
