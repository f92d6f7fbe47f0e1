"""A terminal of forty columns that has no more than ASCII, in the place of standard output."""

from __future__ import annotations

import io
import re
import sys

import pytest

COLUMNS = 40


class NarrowTerminal(io.TextIOWrapper):
    """What was written to it can be read as lines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(io.BytesIO(), encoding="ascii", errors="backslashreplace")
        monkeypatch.setenv("COLUMNS", str(COLUMNS))
        monkeypatch.setattr(sys, "stdout", self)

    def isatty(self) -> bool:
        """Return True."""
        return True

    def lines(self) -> list[str]:
        """Return what was written, without its colours."""
        self.seek(0)
        return re.sub(r"\x1b\[[0-9;]*m", "", self.read()).splitlines()
