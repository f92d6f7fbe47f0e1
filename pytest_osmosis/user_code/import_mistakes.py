"""How the user's mistakes in named modules are told: close matches, and the user's frames alone.

Exception
  ImportingError    nothing usable is there; `str()` is the whole message, the option included
"""

from __future__ import annotations

import importlib
import inspect
import os
import traceback
from collections.abc import Iterable
from pathlib import Path

_OUR_FOLDER = str(Path(__file__).parent) + os.sep
_LINES_SHOWN = 60


class ImportingError(Exception):
    """What was named cannot be imported or used; `str()` is the whole message."""


def closest(name: str, names: Iterable[str]) -> str:
    """A ` Did you mean …?` for a name that is not among `names`, or nothing."""
    from difflib import get_close_matches  # only for a mistake

    public = [other for other in names if not other.startswith("__")]
    matches = get_close_matches(name, public, n=2, cutoff=0.5)  # `agnet` is meant for `agent_loop`
    return f" Did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def kind_of(value: object) -> str:
    """What a value is, for a message: `the class Loop`, `the function run`, `an int`."""
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if inspect.isfunction(value):
        return f"the function {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def user_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes: the user's frames alone, at most 60 lines."""
    shown = traceback.TracebackException.from_exception(error, limit=-40, compact=True)
    seen: traceback.TracebackException | None = shown
    while seen is not None:
        seen.stack = traceback.StackSummary.from_list(user_frames(seen.stack))
        seen = seen.__cause__ or seen.__context__
    lines = "".join(shown.format()).rstrip().splitlines()
    if len(lines) > _LINES_SHOWN:
        lines = [*lines[:10], "  ...", *lines[10 - _LINES_SHOWN :]]
    return "\n".join(lines)


def user_frames(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames below ours, without those of the import system."""
    kept: list[traceback.FrameSummary] = []
    for frame in frames:
        if frame.filename.startswith(_OUR_FOLDER):
            kept.clear()
        elif not _is_machinery(frame.filename):
            kept.append(frame)
    return kept


def _is_machinery(filename: str) -> bool:
    return (
        filename.startswith("<frozen ")
        or filename == importlib.__file__
        or filename.endswith("/_pytest/assertion/rewrite.py")
    )
