"""The options of keeping -> how runs are kept and gone on with, or which are scored again."""

from __future__ import annotations

import pytest

from ..spec import Keeping, Rescore
from .reader import OptionReader

_CONTRADICTORY = (
    ("rescore", "fresh"),
    ("rescore", "resume"),
    ("rescore", "extend"),
    ("rescore", "retry-failed"),
    ("fresh", "resume"),
    ("fresh", "extend"),
    ("fresh", "retry-failed"),
    ("no-journal", "resume"),
    ("no-journal", "extend"),
    ("no-journal", "retry-failed"),
)


def keeping(given: OptionReader) -> Keeping:
    """Return how runs are kept; refuse options that contradict each other."""
    for one, other in _CONTRADICTORY:
        if given(one) and given(other):
            raise pytest.UsageError(
                f"{given.spelled(one)} and {given.spelled(other)} contradict each other: "
                "give one of them"
            )
    run_dir = given("run-dir")
    return Keeping(
        journal=not given("no-journal"),
        run_dir=given.resolved("run-dir", run_dir) if run_dir else None,
        resume=given("resume"),
        extend=given("extend"),
        fresh=given("fresh"),
        retry=given("retry-failed"),
    )


def rescore(given: OptionReader) -> Rescore | None:
    """Return the kept evaluation that is scored again, if one is."""
    run = given("rescore")
    if run is None:
        return None
    data = given("data") if given.on_command_line("data") else ()
    if len(data) > 1:
        raise pytest.UsageError(f"{given.spelled('rescore')} goes with one --osmosis-data alone")
    return Rescore(
        run=run,
        data=given.resolved("data", data[0]) if data else None,
        eval_fns=given("eval-fn"),
        grader=given("grader"),
        pass_threshold=None if given.raw("pass-threshold") is None else given("pass-threshold"),
    )
