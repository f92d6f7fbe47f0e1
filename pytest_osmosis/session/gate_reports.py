"""Gates as pytest reports, like any test's: for the terminal, JUnit and other plugins.

The places that lean on pytest's own classes are here. Knows verdicts, and not how they came about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat

if TYPE_CHECKING:
    from ..verdicts import GateResult

VERDICT = "osmosis_verdict"
"""The attribute of a gate's report that holds its outcome."""


def reports_of(
    nodeid: str, location: tuple[str, None, str], verdict: GateResult, section: str
) -> Iterable[pytest.TestReport]:
    """The three reports of a test, for one gate; `section` is shown where it failed."""
    said: Any = _sentence(verdict)
    if verdict.outcome == "failed":
        said = compat.failure_section(lambda: section, path=nodeid, line=said)
    phases: tuple[tuple[Any, Any], ...] = (
        ("setup", None),
        ("call", None if verdict.outcome == "passed" else said),
        ("teardown", None),
    )
    for when, longrepr in phases:
        report = pytest.TestReport(
            nodeid=compat.verbatim_id(nodeid),
            location=location,
            keywords={},
            outcome="passed" if longrepr is None else "failed",
            longrepr=longrepr,
            when=when,
            user_properties=list(_properties(verdict)),
        )
        setattr(report, VERDICT, verdict.outcome)
        yield report


def _sentence(verdict: GateResult) -> str:
    what = f"{verdict.subject} is " if verdict.figure is not None else ""
    return f"{verdict.outcome}: {what}{verdict.sentence()}"


def _properties(verdict: GateResult) -> Iterable[tuple[str, object]]:
    yield "osmosis_verdict", verdict.outcome
    for name in ("figure", "low", "high"):
        value = getattr(verdict, name)
        if value is not None:
            yield f"osmosis_{name}", value


def begin_line(config: pytest.Config) -> None:
    """The runs' line has reached 100 %: the gates' letters stand on one of their own."""
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or config.get_verbosity() > 0:
        return
    if getattr(terminal, "showfspath", False):
        terminal.currentfspath = None
    else:
        terminal.write_line("")
