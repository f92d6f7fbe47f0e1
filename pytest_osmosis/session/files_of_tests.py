"""The test files that pytest will collect, found before it does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest


def test_files(config: pytest.Config, arguments: Iterable[str]) -> Iterator[Path]:
    """Yield the test files below the arguments."""
    patterns = config.getini("python_files")
    for argument in arguments:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if path.is_file():
            yield path
        else:
            yield from _python_files(path, patterns, config)


def _python_files(top: Path, patterns: Sequence[str], config: pytest.Config) -> Iterator[Path]:
    left_out = config.getini("norecursedirs")
    for folder, folders, files in os.walk(top):
        folders[:] = [
            name
            for name in folders
            if not any(fnmatch(name, pattern) for pattern in left_out)
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in files:
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield Path(folder, name)
