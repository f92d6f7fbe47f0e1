"""Node ids of runs on a command line without what they are made of.

Pytest would say that there is no such item; this says which options are missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..dataset.formats import SUFFIXES
from ..escaping import escape_control_chars
from ..options.reader import OptionReader
from ..options.table import BY_NAME, FEATURES
from .selection import is_in

_RUN = re.compile(r"(?P<file>.+?)::(?:row-\d+\[(?P<label>[^]]+)\]|.+)\[run-(?P<index>\d+)\]")


def check(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a node id that needs further options."""
    given = OptionReader(config)
    if given.naming():
        return
    for text in config.args:
        run = _RUN.fullmatch(text)
        if run is None or not (run["file"].endswith(SUFFIXES) and Path(run["file"]).is_file()):
            continue
        if lacking := list(_lacking_of_run(given, run)):
            raise pytest.UsageError(
                f"{escape_control_chars(text)} is a run of an evaluation: give "
                f"{_listed(lacking)} too, or put what is missing into the ini file"
            )


def _lacking_of_run(given: OptionReader, run: re.Match[str]) -> Iterator[str]:
    is_asked = given.raw("agent") is not None or given.raw("model") is not None
    if not is_asked:
        yield BY_NAME["agent"].flag_name
    if not any(is_in(run["file"], given.resolved("data", data)) for data in given("data")):
        yield f"{BY_NAME['data'].flag_name}={os.path.relpath(run['file'])}"
    if not is_asked:  # else the agent says whether it needs one
        yield BY_NAME["model"].flag_name
    for feature in FEATURES if run["label"] else ():
        yield from feature.lacking(given, run["label"])
    if int(run["index"]) >= given("n"):
        yield f"{BY_NAME['n'].flag_name} {int(run['index']) + 1} or more"


def _listed(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
