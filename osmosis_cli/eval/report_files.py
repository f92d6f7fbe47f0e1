"""Report files as the commands take them: read, or a failure that names the file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import command_errors

if TYPE_CHECKING:
    from pytest_osmosis.reports.json_models import Report
    from pytest_osmosis.suite_results import EvalResult, SuiteResult


def read(path: Path, where: str = "") -> EvalResult:
    """Return the result that a report tells of; `where` comes before what is wrong with it."""
    from pytest_osmosis.reports.json_reader import read_report

    with readable(where):
        return read_report(path)


def load(path: Path) -> tuple[Report, EvalResult]:
    """Return what a report says, and the result that it tells of."""
    from pytest_osmosis.reports.json_reader import load_report

    with readable():
        return load_report(path)


def readable(where: str = "") -> AbstractContextManager[None]:
    """Make what is wrong with a report the command's error."""
    from pytest_osmosis.reports.json_reader import UnreadableReport

    return command_errors(UnreadableReport, code="invalid", where=where)


def same_suites(
    first: EvalResult, other: EvalResult
) -> tuple[list[tuple[SuiteResult, SuiteResult]], list[str]]:
    """Suites of two reports that belong together, and the names of those that are in one only.

    The only one of a report needs no name: its data may lie elsewhere on another machine.
    """
    if len(first.suites) == len(other.suites) == 1:
        return [(first.suites[0], other.suites[0])], []
    there = {suite.info.name: suite for suite in other.suites}
    names = [suite.info.name for suite in first.suites]
    pairs = [(suite, there[suite.info.name]) for suite in first.suites if suite.info.name in there]
    alone = [name for name in names if name not in there]
    return pairs, alone + [name for name in there if name not in names]
