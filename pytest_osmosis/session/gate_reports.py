"""How gates, and the runs that they decide on, are reported to pytest and counted.

A gate is reported like a test, for the terminal, JUnit and other plugins. Knows verdicts, and not
how they came about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..items.protocol import BELOW
from ..run_result import REPORT_FIELD

if TYPE_CHECKING:
    from ..verdicts import GateResult

GATES = "gates"
"""What the node id of a gate begins with."""
VERDICT = "osmosis_verdict"
"""The attribute of a gate's report that holds its outcome."""
_AS_NAME = str.maketrans("[]", "()")
"""Pytest takes a bracket in a node id for the parameters of a test, which end it."""


class OutcomeLetters:
    """A pytest plugin where gates decide: letters and words of gates, and of runs below."""

    def __init__(self, is_gated: Callable[[str], bool]) -> None:
        """`is_gated`: whether gates decide on a suite."""
        self._is_gated = is_gated
        self.failures = 0
        """Errors of gated runs: they do not fail the session."""
        self._gates: Counter[str] = Counter()
        """How many gates have which outcome."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the errors of gated runs."""
        run = getattr(report, REPORT_FIELD, None)
        if run is not None and report.failed and self._is_gated(run.suite):
            self.failures += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """A passed gate counts as a gate; an inconclusive one is neither passed nor failed.

        A run below the threshold that fails nothing is counted as what it is.
        """
        if hasattr(report, BELOW):
            return "below", "-", ("BELOW", {"yellow": True})
        outcome = getattr(report, VERDICT, None) if report.when == "call" else None
        if outcome is None or outcome == "failed":
            return None
        gates = "gate" if self._gates[outcome] == 1 else "gates"
        letter, color = (".", "green") if outcome == "passed" else ("?", "yellow")
        return f"{gates} {outcome}", letter, (outcome.upper(), {color: True})

    def begin_gates(self, session: pytest.Session, outcomes: Sequence[str]) -> None:
        """The runs' line has reached 100 %: the gates' letters stand on one of their own."""
        self._gates.update(outcomes)
        terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        if session.config.get_verbosity() > 0:
            session.testscollected += len(outcomes)
        elif getattr(terminal, "showfspath", False):
            terminal.currentfspath = None
        elif terminal is not None:
            terminal.write_line("")


def report_gate(config: pytest.Config, name: str, verdict: GateResult, section: str) -> None:
    """Make the three reports of a test, for one gate; `section` is shown where it failed."""
    nodeid = f"{GATES}::{name.translate(_AS_NAME)}"
    # Not the node id's own end, in which the terminal takes dots for the names of classes.
    location = (GATES, None, f"gate {name}")
    said: Any = _sentence(verdict)
    if verdict.outcome == "failed":
        said = compat.failure_section(lambda: section, path=nodeid, line=said)
    phases: tuple[tuple[Any, Any], ...] = (
        ("setup", None),
        ("call", None if verdict.outcome == "passed" else said),
        ("teardown", None),
    )
    compat.name_in_junit(config, nodeid, name)
    config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when, longrepr in phases:
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="passed" if longrepr is None else "failed",
            longrepr=longrepr,
            when=when,
            user_properties=list(_properties(verdict)),
        )
        setattr(report, VERDICT, verdict.outcome)
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def _sentence(verdict: GateResult) -> str:
    what = f"{verdict.subject} is " if verdict.figure is not None else ""
    return f"{verdict.outcome}: {what}{verdict.sentence()}"


def _properties(verdict: GateResult) -> Iterable[tuple[str, object]]:
    yield "osmosis_verdict", verdict.outcome
    for name in ("figure", "low", "high"):
        value = getattr(verdict, name)
        if value is not None:
            yield f"osmosis_{name}", value
