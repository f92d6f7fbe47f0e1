"""Time passing while a user is in the browser: with a spinner where that is seen."""

from __future__ import annotations

import os
import sys
import time
from itertools import cycle
from types import TracebackType

import click

_FRAME_S = 0.12


class Spinner:
    """A clock whose sleep draws on standard error, if that is a terminal; a context manager.

    It uses no escape sequence, and leaves an empty line behind, after Ctrl-C too.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._frames = cycle("|/-\\")
        self._is_seen = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._width = 0

    def __enter__(self) -> Spinner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            self._draw("")
            click.echo("\r", nl=False, err=True)

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ends = self.now() + seconds
        while (left := ends - self.now()) > 0:
            if self._is_seen:
                self._draw(f"{next(self._frames)} {self._text}")
            time.sleep(min(left, _FRAME_S) if self._is_seen else left)

    def _draw(self, line: str) -> None:
        click.echo(f"\r{line.ljust(self._width)}", nl=False, err=True)
        self._width = len(line)
