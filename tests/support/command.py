"""The `osmosis` command in the process of a test, with a standard input of the test's own."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli


class Stdin(io.TextIOWrapper):
    """Standard input that is no terminal, or seems to be one."""

    def __init__(self, content: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Osmosis:
    """The command: called with words, `stdin` and whether it is a `terminal`.

    What was printed before it is run is not its output; no output has a text that is `hidden`.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        captured: pytest.CaptureFixture[str],
        *group: str,
    ) -> None:
        self.monkeypatch = monkeypatch
        self.captured = captured
        self.group = group
        self.hidden: tuple[str, ...] = ()

    def logged_in(self, platform: Any) -> Osmosis:
        """Return the command with the variables of a login at a platform."""
        for name, value in platform.environment.items():
            self.monkeypatch.setenv(name, value)
        return self

    def __call__(
        self, *words: str, stdin: bytes = b"", terminal: bool = False
    ) -> tuple[int, str, str]:
        """Return the exit status, standard output and standard error."""
        self.monkeypatch.setattr(sys, "stdin", Stdin(stdin, terminal=terminal))
        self.captured.readouterr()
        status = run(cli, [*self.group, *words])
        out, err = self.captured.readouterr()
        assert not [text for text in self.hidden if text in out + err]
        return status, out, err

    def out(self, *words: str, **given: Any) -> str:
        """Return what is printed by a command that succeeds and has no words for its user."""
        status, out, err = self(*words, **given)
        assert (status, err) == (0, "")
        return out

    def document(self, *words: str, **given: Any) -> Any:
        """Return what such a command prints as JSON."""
        return json.loads(self.out(*words, "--json", **given))

    def error(self, *words: str, status: int = 1, **given: Any) -> str:
        """Return what is on standard error of a command that fails and prints nothing."""
        ended, out, err = self(*words, **given)
        assert (ended, out) == (status, "")
        return err

    def failure(self, *words: str, status: int = 1, **given: Any) -> dict[str, Any]:
        """Return the error that such a command gives as JSON."""
        failure: dict[str, Any] = json.loads(self.error(*words, "--json", status=status, **given))
        return failure["error"]
