"""Report files as the commands take them: read, or a failure that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CommandError

if TYPE_CHECKING:
    from pytest_osmosis.reports.json_reader import AskedGate
    from pytest_osmosis.suite_results import EvalResult, SuiteResult


def read(path: Path) -> EvalResult:
    """Return the result that a report tells of."""
    from pytest_osmosis.reports.json_reader import UnreadableReport, read_report

    try:
        return read_report(path)
    except UnreadableReport as error:
        raise CommandError(str(error), code="invalid") from None


def gates_of(path: Path) -> list[AskedGate]:
    """Return the gates that a report tells of."""
    from pytest_osmosis.reports.json_reader import UnreadableReport, read_gates

    try:
        return read_gates(path)
    except UnreadableReport as error:
        raise CommandError(str(error), code="invalid") from None


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
