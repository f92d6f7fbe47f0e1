"""Marked functions, found by the text of their files before anything is collected or imported.

A function gets the marker, or the decorator, in its own file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...items.decorator import MARKER
from ...options.reader import OptionReader
from ...session.files_of_tests import test_files
from ...session.selection import (
    has_unknown_word,
    is_named,
    mark_asks,
    matches,
    waits_to_be_asked,
)

_MARKED = re.compile(
    rb"\b(?:mark|pytest_osmosis)\s*\.\s*osmosis\b"
    rb"|\bfrom\s+pytest_osmosis\s+import\s*(?:\([^)]*|[^\n(]*)\bosmosis\b"
)
_NAMED = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


def any_selected(config: pytest.Config) -> bool:
    """Return whether test files that are going to be collected have functions with the marker."""
    if OptionReader(config).on_command_line("model") or mark_asks(config):
        return True
    files = _marked_files(config)
    if waits_to_be_asked(config):
        files = [path for path in files if is_named(config, path.resolve())]
    words: str = config.option.keyword
    if not files or not words:
        return bool(files)
    known = [each for path in test_files(config, config.args) for each in _names_in(path)]
    if has_unknown_word(words, known):
        return True  # it may be the name of a row
    return any(matches(words, each) for path in files for each in _names_in(path))


def _marked_files(config: pytest.Config) -> list[Path]:
    """Return the test files below the arguments that have functions with the marker."""
    files = test_files(config, config.args)
    return [path for path in files if _MARKED.search(_read(path) or b"")]


def _names_in(path: Path) -> Iterator[set[str]]:
    """Yield the names that each function and class of a file stands below, with its own."""
    for name in _NAMED.findall(_read(path) or b""):
        yield {*path.parts, MARKER, name.decode()}


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # pytest itself reports what it cannot read
