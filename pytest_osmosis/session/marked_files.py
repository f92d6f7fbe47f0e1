"""Test files whose functions have our marker, found by their text: nothing is imported for it.

A function gets the marker, or the decorator, in its own file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

_MARKED = re.compile(
    rb"\b(?:mark|pytest_osmosis)\s*\.\s*osmosis\b"
    rb"|\bfrom\s+pytest_osmosis\s+import\s*(?:\([^)]*|[^\n(]*)\bosmosis\b"
)
_NAMED = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


def marked_files(config: pytest.Config) -> list[Path]:
    """Return the test files below the arguments that have functions with the marker."""
    files = test_files(config, config.args)
    return [path for path in files if _MARKED.search(_read(path) or b"")]


def names_in(path: Path) -> list[str]:
    """Return the names of the functions and classes of a file."""
    return [found.decode() for found in _NAMED.findall(_read(path) or b"")]


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


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # pytest itself reports what it cannot read
