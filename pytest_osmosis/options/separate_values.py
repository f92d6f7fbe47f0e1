"""Values of our options that stand as words of their own, and that pytest takes for paths of tests.

Before plugins are loaded pytest does not know our options, and looks for rootdir and ini file near
all words that may be paths: `--osmosis-output ../main/main.json` would make those of another
project the session's, once the file exists. With `=` the value is part of the option's word.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from .. import compat
from .table import OPTIONS, Option

_TEMPLATE = "--osmosis-prompt-template"
_PATHS = ("DIR", "FILE", "GLOB", "MODULE", "ROWS", "RUN")
"""What the metavar of an option has whose value may be a path."""


def check(config: pytest.Config, parser: pytest.Parser) -> None:
    """Raise `pytest.UsageError` for a value that moves, or may move, rootdir or the ini file.

    To be called before conftest.py files are loaded.
    """
    given = [*map(str, config.invocation_params.args)]
    for word, value in pairwise(given):
        if word == _TEMPLATE and value.startswith("@"):
            raise pytest.UsageError(
                f"{word} {value}: pytest reads options from a file behind an @ that is a word "
                f"of its own; write {shlex.quote(f'{word}={value}')}"
            )
    words = _expanded([*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *given])
    found = dict(_separate(words, _by_spelling(parser)))
    if not found:
        return
    others = [word for at, word in enumerate(words) if not {at, at + 1} & found.keys()]
    arguments = parser.parse_known_args(others).file_or_dir
    here = config.invocation_params.dir
    usual = compat.root_of(config, parser, others, arguments)
    root, _ = usual
    for at, option in found.items():
        spelling, word = words[at - 1], words[at]
        path = Path(os.path.normpath(here / word.removeprefix("@").partition("::")[0]))
        moves = (
            os.path.exists(path)
            and compat.root_of(config, parser, others, [*arguments, word]) != usual
        )
        if moves or (_is_path(option, word) and not path.is_relative_to(root)):
            raise pytest.UsageError(
                f"{spelling} {word}: pytest takes a path that is a word of its own for one of "
                "tests, and may take rootdir and ini file from there; write "
                f"{shlex.quote(f'{spelling}={word}')}"
            )


def _expanded(words: Iterable[str]) -> list[str]:
    """Return the words with a file's lines in place of `@FILE`, but as the value of our option."""
    found: list[str] = []
    for word in words:
        if word.startswith("@") and found[-1:] != ["--osmosis-rows"]:
            found += _expanded(Path(word[1:]).read_text().splitlines())
        else:
            found.append(word)
    return found


def _by_spelling(parser: pytest.Parser) -> dict[str, Option]:
    """Return the options that have values; a short spelling of another plugin is not ours."""
    taken = compat.option_names(parser) or set()
    valued = [option for option in OPTIONS if not option.flag]
    short = {each.short: each for each in valued if each.short and each.short not in taken}
    return {each.flag_name: each for each in valued} | short


def _separate(words: Sequence[str], options: dict[str, Option]) -> Iterator[tuple[int, Option]]:
    """Yield the place of each value that is a word of its own, and its option."""
    for at, (word, value) in enumerate(pairwise(words), start=1):
        if word == "--":
            return
        if word in options and not value.startswith("-"):
            yield at, options[word]


def _is_path(option: Option, word: str) -> bool:
    """Return whether a value is a path, be it there or not."""
    if option.is_path or option.name == "data":
        return True
    return os.sep in word and any(each in (option.metavar or "") for each in _PATHS)
