"""The `osmosis` command in the process of a test, with a standard input of the test's own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli

Osmosis = Callable[..., tuple[int, str, str]]
"""Takes the words, `stdin` and whether it is a `terminal`; gives status, output and errors."""


class Stdin(io.TextIOWrapper):
    """Standard input that is no terminal, or seems to be one."""

    def __init__(self, content: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def command(monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> Osmosis:
    """The command; what was printed before it is run is not its output."""

    def osmosis(*words: str, stdin: bytes = b"", terminal: bool = False) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", Stdin(stdin, terminal=terminal))
        captured.readouterr()
        status = run(cli, words)
        return status, *captured.readouterr()

    return osmosis
