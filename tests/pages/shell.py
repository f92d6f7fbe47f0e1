"""The commands of a page, run in the process of a test, in the folder of the page's files.

It knows what pages need of a shell: variables, patterns of file names, `cd`, `export`, `mkdir -p`,
`&&`, and comments. `pytest` and `osmosis` are the real ones; a model at `localhost:8000` is the
embedded endpoint.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli

LOCAL = "http://localhost:8000/v1"
NOT_RUN = {
    "pip": "installs",
    "python -m pip": "installs",
    "python -m venv": "installs",
    ".": "is the shell's",
    "uv": "installs",
    "git": "is not ours",
    "gh": "asks GitHub",
    "curl": "asks GitLab",
    "npx": "is not ours",
    "osmosis login": "asks a platform",
    "osmosis logout": "asks a platform",
    "osmosis platform": "is run by tests/osmosis_platform",
    "osmosis eval submit": "asks a platform",
    "osmosis eval view": "serves until it is stopped",
    "osmosis dataset": "asks a platform",
    "osmosis secret": "asks a platform",
    "osmosis serve": "serves until it is stopped",
    "uvicorn": "serves until it is stopped",
}
"""Commands that a page may show and no page runs, and why; their options are checked elsewhere."""


class Shell:
    """Runs commands; keeps what the last one printed."""

    def __init__(
        self,
        pytester: pytest.Pytester,
        monkeypatch: pytest.MonkeyPatch,
        captured: pytest.CaptureFixture[str],
        base_url: str,
    ) -> None:
        self.printed = ""
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        self._captured = captured
        self._base_url = base_url
        self._folder = pytester.path
        monkeypatch.setenv("PYTEST_ADDOPTS", "-n0")
        monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / ".cache"))

    def __call__(self, line: str) -> int:
        """Run a line; return the status of its last command."""
        status = 0
        for part in re.split(r"\s&&\s", line.replace(LOCAL, self._base_url)):
            if not f"{part} ".startswith(tuple(f"{words} " for words in NOT_RUN)):
                status = self._one(list(self._words(part)))
            if status:
                break
        return status

    def _words(self, part: str) -> Iterator[str]:
        for word in shlex.split(part, comments=True):
            whole = re.sub(r"\$\{?(\w+)\}?", lambda found: os.environ[found[1]], word)
            matching = sorted(str(path.name) for path in Path().glob(whole)) if "*" in whole else []
            yield from matching or [whole]

    def _one(self, words: list[str]) -> int:
        if words[:3] == ["python", "-m", "pytest"]:
            words = words[2:]
        commands: Mapping[str, Callable[..., int]] = {
            "pytest": self._pytest,
            "osmosis": self._osmosis,
            "cd": self._cd,
            "export": self._export,
            "mkdir": self._mkdir,
        }
        assert words[0] in commands, f"{words[0]}: write <!-- not run: WHY --> above the block"
        return commands[words[0]](*words[1:])

    def _pytest(self, *words: str) -> int:
        result = self._pytester.runpytest_inprocess(*words)
        self.printed = "\n".join([*result.outlines, *result.errlines])
        return int(result.ret)

    def _osmosis(self, *words: str) -> int:
        self._captured.readouterr()
        with forgotten_modules(self._pytester.path):
            status = run(cli, words)
        self.printed = "".join(self._captured.readouterr())
        return status

    def _cd(self, folder: str) -> int:
        self._monkeypatch.chdir(folder)
        return 0

    def _export(self, assignment: str) -> int:
        name, _, value = assignment.partition("=")
        self._monkeypatch.setenv(name, value)
        return 0

    def _mkdir(self, *words: str) -> int:
        Path(words[-1]).mkdir(parents=True, exist_ok=True)
        return 0


@contextmanager
def forgotten_modules(folder: Path) -> Iterator[None]:
    """Forget what is imported from this folder, and what is put on the path."""
    path = sys.path[:]
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
