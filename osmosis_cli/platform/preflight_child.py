"""Runs our own Python modules on a rollout's code, each in a fresh process that ends in time.

The process has the environment of the rollout, without the login to the platform.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmosis_ai.escaping import printable
from osmosis_ai.secret import Redactor, Secret
from osmosis_ai.secret_variables import SECRET_NAMES, secret_variables
from pytest_osmosis.user_code.child_process import Program, TooMuchOutput

_NOT_THEIRS = ("OSMOSIS_TOKEN", "PYTEST_ADDOPTS")
"""The login to the platform, and options for sessions of the user's own."""
_MOST = 600
"""Characters of an error that are shown: its beginning, and its end, which names the place."""
_LAST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    status: int
    out: str
    last_words: str
    """The end of what it wrote on stderr."""
    in_time: bool

    @property
    def document(self) -> dict[str, Any] | None:
        """The JSON object that it printed; None where it printed another thing."""
        return json_object(self.out)


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class RolloutProcesses:
    """Starts processes for one rollout."""

    root: Path
    """The workspace, where they run."""
    environment: Mapping[str, str] = field(repr=False)
    redact: Redactor

    @classmethod
    def of(
        cls,
        root: Path,
        environment: Mapping[str, str],
        *,
        secrets: Sequence[str],
        hidden: Sequence[str],
    ) -> RolloutProcesses:
        """Make one of variables; messages have the values of none of these, whatever their name.

        In what the processes write, those of `secrets` are masked by themselves.
        """
        kept = {name: value for name, value in environment.items() if name not in _NOT_THEIRS}
        kept["PYTHONDONTWRITEBYTECODE"] = "1"  # trying it leaves nothing in the work tree
        kept[SECRET_NAMES] = " ".join([*kept.get(SECRET_NAMES, "").split(), *secrets])
        values = (Secret(kept[name], name) for name in hidden if kept.get(name))
        return cls(root, kept, Redactor([*secret_variables(*secrets), *values]))

    def run(self, words: Sequence[str], *, limit_s: float) -> Ended:
        """Run Python with these words; at the limit the process and its children are ended."""
        said: list[str] = []
        program = Program(
            argv=[sys.executable, *words],
            cwd=self.root,
            env=self.environment,
            stdin=b"",
            on_stderr=said.append,
        )
        expired = threading.Event()

        def end() -> None:
            expired.set()
            program.kill()

        timer = threading.Timer(limit_s, end)
        timer.daemon = True
        timer.start()
        try:
            result = program.run()
        except TooMuchOutput:
            return Ended(1, "", "it printed more than 16 MiB", True)
        finally:
            timer.cancel()
        last_words = "".join(said)[-_LAST_WORDS:]
        return Ended(result.status, result.stdout, last_words, not expired.is_set())

    def shown(self, text: str) -> str:
        """Return text from such a process in one printable line, without secrets."""
        told = printable(" ".join(self.redact(text).split()))
        return told if len(told) <= _MOST else f"{told[: _MOST - 150]} ... {told[-150:]}"
