"""Whether a session evaluates, and how much: decided before anything is collected.

An evaluation in the ini file leaves sessions alone that select none of its items: they need no key,
no model and no worker. So `-m` and `-k` are read here too. Imports no code of the user's, and none
of ours that only an evaluation needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from .. import compat
from ..errors import ConfigurationError, NoRows
from ..items.decorator import MARKER
from ..options.reader import PLAN, OptionReader
from ..options.table import FEATURES
from ..options.values import EXPLICIT
from ..spec import Keeping

if TYPE_CHECKING:
    from ..spec import EvalSpec

_PARTS = {"keyword": "-k", "lf": "--lf", "stepwise": "--stepwise", "deselect": "--deselect"}
"""Options of pytest that select single items, by their names in `config.option`."""
_OPTION = "osmosis_selected"
"""The attribute of pytest's options, which workers get too, with the session's selection."""
ONE_PROCESS = pytest.StashKey[str]()
"""Why a batch size has started no worker."""

Selection = Literal["data", "tests", "nothing"]
"""The data files that options name, and tests; these alone; or nothing."""


def selection_of(config: pytest.Config) -> Selection:
    """Return what the session has of evaluations; a worker has what its controller has."""
    selection: Selection | None = getattr(config.option, _OPTION, None)
    if selection is None:
        selection = _select(config)
        setattr(config.option, _OPTION, selection)
    return selection


def begins_with_tests(config: pytest.Config) -> bool:
    """Return whether a test alone begins an evaluation, with no option for one."""
    if not mark_selects(config) or waits_to_be_asked(config):
        return False
    setattr(config.option, _OPTION, "tests")
    return True


def waits_to_be_asked(config: pytest.Config) -> bool:
    """Return whether evaluations run only where they are asked for, and this session does not."""
    given = OptionReader(config)
    return given("run") == EXPLICIT and not _is_given(given) and not mark_asks(config)


def _select(config: pytest.Config) -> Selection:
    compat.evaluate(config.option.keyword or "osmosis", lambda word: True)  # is it an expression?
    given = OptionReader(config)
    files = [given.resolved("data", text) for text in given("data")]
    names_one = any(is_named(config, file) for file in files)
    is_asked = _is_given(given, "agent", "data") or names_one
    if not mark_selects(config):
        return "data" if is_asked else "nothing"
    if files and not names_one and _is_of_tests(config, given):
        return "tests"
    if is_asked:
        return "data"
    collects = not _has_paths(config) or any(is_below_any(str(f), config.args) for f in files)
    if files and collects and not waits_to_be_asked(config) and _any_row_matches(config):
        return "data"
    return "tests" if _has_tests(config) else "nothing"


def _is_of_tests(config: pytest.Config, given: OptionReader) -> bool:
    """Return whether the data is for functions with the marker: nothing else can run on it."""
    is_alone = given.raw("agent") is None and given.raw("model") is None
    return is_alone and not takes_place_of_tests(config) and _has_tests(config)


def _has_tests(config: pytest.Config) -> bool:
    return any(each.begins(config) for each in FEATURES)


def _is_given(given: OptionReader, *names: str) -> bool:
    """Whether the command line, and not the ini file, gives one of these, or what is evaluated."""
    names = (*(names or ("agent", "data", "model")), *given.naming())
    return any(map(given.on_command_line, names))


def argument_of(config: pytest.Config, data: Path) -> str:
    """Return a data file's path as pytest takes it: `[` and `::` would make a node id of it."""
    path = str(data)
    if _is_node_id(path):
        path = os.path.relpath(data, config.invocation_params.dir)
    if _is_node_id(path):
        raise pytest.UsageError(
            f"{OptionReader(config).spelled('data')} {data}: pytest takes a path with [ or :: for "
            "a node id; rename the file or its folder"
        )
    return path


def _is_node_id(path: str) -> bool:
    return "[" in path or "::" in path


def takes_place_of_tests(config: pytest.Config) -> bool:
    """Return whether the data files are collected where no argument is given, and no test is."""
    given = OptionReader(config)
    return not _has_paths(config) and bool(
        given.on_command_line("data") or given("only") or given.naming()
    )


def collects_runs_alone(config: pytest.Config) -> bool:
    """Return whether all items of the session are known to be of evaluations."""
    if mark_asks(config) or takes_place_of_tests(config):
        return True
    given = OptionReader(config)
    files = [given.resolved("data", text) for text in given("data")]
    others = [text for text in config.args if not any(is_in(text, file) for file in files)]
    if _has_paths(config):
        return not others
    from .files_of_tests import test_files

    return next(test_files(config, others), None) is None


def is_below_any(file: str, arguments: list[str]) -> bool:
    """Return whether a file is one of the arguments, or in a folder that is."""
    # realpath, unlike `resolve`, accepts a loop of links, which is reported where the file is read
    paths = [os.path.realpath(argument.partition("::")[0]) for argument in arguments]
    return any(Path(file).is_relative_to(path) for path in paths)


def is_in(argument: str, file: Path) -> bool:
    """Return whether an argument is the file or a node id in it."""
    return os.path.realpath(argument.partition("::")[0]) == str(file)


def _has_paths(config: pytest.Config) -> bool:
    return config.args_source is config.ArgsSource.ARGS


def is_named(config: pytest.Config, file: Path) -> bool:
    """Whether an argument is a file or a node id in it."""
    return _has_paths(config) and any(is_in(text, file) for text in config.args)


# ---- -m and -k


def mark_selects(config: pytest.Config) -> bool:
    """Return whether `-m` leaves what has our marker."""
    marks: str = config.option.markexpr
    return not marks or compat.evaluate(marks, lambda word: word == MARKER)


def mark_asks(config: pytest.Config) -> bool:
    """Whether `-m` selects what has our marker, and nothing without a marker."""
    marks: str = config.option.markexpr
    return bool(marks) and mark_selects(config) and not compat.evaluate(marks, lambda _: False)


# ---- parts


def _part(config: pytest.Config) -> str | None:
    """The argument that selects a part of an evaluation, if there is one."""
    for name, spelling in _PARTS.items():
        if getattr(config.option, name, None):
            return spelling
    return next((text for text in config.args if "::" in text), None)


def keeping_of(config: pytest.Config, keeping: Keeping) -> Keeping:
    """Return how runs are kept: those of a part neither use nor change a whole evaluation."""
    selecting = _part(config)
    if selecting is None:
        return keeping if mark_selects(config) else replace(keeping, journal=False)
    if keeping.reuse_option:
        raise pytest.UsageError(
            f"{keeping.reuse_option} uses the runs of whole evaluations, and {selecting} selects "
            "a part of one: give one of them"
        )
    return replace(keeping, journal=False)


def matches(words: str, names: Iterable[str]) -> bool:
    """Whether an item that stands below these names, its own among them, is selected."""
    lower = [name.lower() for name in names]
    return compat.evaluate(words, lambda word: any(word.lower() in name for name in lower))


def has_unknown_word(words: str, known: Iterable[Iterable[str]]) -> bool:
    """Whether a word is in none of the names that are known."""
    names = " ".join(name.lower() for each in known for name in each)
    said = set(re.findall(r"[^\s()]+", words.lower())) - {"and", "or", "not"}
    return any(word not in names for word in said)


def _any_row_matches(config: pytest.Config) -> bool:
    """Whether `-k` selects a run, as far as names tell; True where rows cannot be read."""
    words: str = config.option.keyword
    if not words:
        return True
    spec = config.stash[PLAN](config)
    runs = (names for each in spec.evals for names in _names_of_runs(config, each))
    try:
        return any(matches(words, names) for names in runs)
    except (ConfigurationError, NoRows):
        return True  # reported when the session starts


def _names_of_runs(config: pytest.Config, spec: EvalSpec) -> Iterator[set[str]]:
    from ..items import nodeids
    from ..rollouts.prepare import read_rows

    dataset = read_rows(spec, validate=False)
    inside = spec.data.is_relative_to(config.rootpath)
    path = spec.data.relative_to(config.rootpath).parts if inside else (spec.data.name,)
    for row_index in dataset.row_indices:
        row = dataset.row_name(row_index)
        for run_index in range(spec.n):
            yield {*path, MARKER, nodeids.item_name(row, run_index, spec.label)}
