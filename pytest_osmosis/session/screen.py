"""The terminal that pytest writes to, for lines of ours: its width, colours and characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import compat
from ..escaping import can_write
from ..reports.line_markup import Style, as_ascii, coloured

NARROWEST = 20
_MARKUP: Mapping[Style, Mapping[str, bool]] = {
    "plain": {},
    "good": {"green": True},
    "bad": {"red": True},
    "doubt": {"yellow": True},
    "strong": {"bold": True},
    "dim": {"light": True},
}


class Screen:
    """Writes lines as pytest does: with its markup, which honours NO_COLOR and `--color`."""

    def __init__(self, terminal: Any) -> None:
        """`terminal` is pytest's terminal reporter."""
        self._terminal = terminal
        writer = terminal.config.get_terminal_writer()
        self.width = max(NARROWEST, int(getattr(writer, "fullwidth", 80)))
        """Columns; 80 where it is no terminal."""
        self._ascii = not can_write("…→", compat.encoding_of(writer))

    def title(self, text: str, sep: str = "=", **markup: bool) -> None:
        """Write a title across the whole width."""
        self._terminal.write_sep(sep, text, **markup)

    def lines(self, lines: Iterable[str], *, style: Style | None = None) -> None:
        """Write lines, each in its own colours or all in one style."""
        for line in lines:
            self.line(line, style=style)

    def line(self, text: str, *, style: Style | None = None) -> None:
        """Write one line."""
        self._terminal.ensure_newline()
        shown = as_ascii(text) if self._ascii else text
        for part, own in coloured(shown) if style is None else [(shown, style)]:
            self._terminal.write(part, **_MARKUP[own])
        self._terminal.line("")
