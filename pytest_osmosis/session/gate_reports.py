"""How gates are reported to pytest, like a test each: their letters, and the exit status they make.

Knows verdicts, and not how they came about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..items.protocol import ERRORED, OBSERVED
from ..outcomes import OUTCOMES, Outcome
from ..verdicts import exit_status

if TYPE_CHECKING:
    from ..suite_results import EvalResult, SuiteResult
    from ..verdicts import GateResult

GATES = "gates"
"""What the node id of a gate begins with."""
VERDICT = "osmosis_verdict"
"""The attribute of a gate's report that holds its outcome."""
_AS_NAME = str.maketrans("[]", "()")
"""Pytest takes a bracket in a node id for the parameters of a test, which end it."""


_BY_ITSELF = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""Exit statuses of a session that was not cut short: nothing failed, something did."""


def report_gates(
    session: pytest.Session,
    result: EvalResult,
    begin: Callable[[pytest.Session, Sequence[str]], None],
    explain: Callable[[GateResult, SuiteResult], str],
    *,
    several: bool,
) -> None:
    """Report every gate, and let the exit status be theirs; `explain` those that failed.

    `begin` is called ahead of the first, with all outcomes; `several`: names begin with that of
    the suite. A failure that is no run's stays one, and whatever else ended the session stays its
    reason.
    """
    verdicts = [(suite, verdict) for suite in result.suites for verdict in suite.verdicts]
    if not verdicts or session.exitstatus not in _BY_ITSELF:
        return
    others_failed = bool(session.testsfailed)
    named_by_other = session.exitstatus != _BY_ITSELF[others_failed]
    outcomes = [verdict.outcome for _, verdict in verdicts]
    begin(session, outcomes)
    for suite, verdict in verdicts:
        section = explain(verdict, suite) if verdict.outcome == "failed" else ""
        name = f"{suite.info.name}::{verdict.gate}" if several else verdict.gate
        _report_gate(session.config, name, verdict, section)
    if not others_failed and not named_by_other:
        session.exitstatus = exit_status(outcomes)


def _report_gate(config: pytest.Config, name: str, verdict: GateResult, section: str) -> None:
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


class OutcomeLetters:
    """A pytest plugin where gates decide: letters and words of gates, and of what they observe."""

    def __init__(self) -> None:
        self._gates: Counter[str] = Counter()
        """How many gates have which outcome."""
        self._observed: set[Outcome] = set()
        """What the letter `-` has stood for."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """A passed gate counts as a gate; an inconclusive one is neither passed nor failed.

        A run that did not pass and fails nothing is counted as what it is.
        """
        if (observed := getattr(report, OBSERVED, None)) is not None:
            self._observed.add(observed)
            status = ERRORED if observed == "error" else observed
            return status, "-", (observed.upper(), {OUTCOMES[observed].color: True})
        outcome = getattr(report, VERDICT, None) if report.when == "call" else None
        if outcome is None or outcome == "failed":
            return None
        gates = "gate" if self._gates[outcome] == 1 else "gates"
        letter, color = (".", "green") if outcome == "passed" else ("?", "yellow")
        return f"{gates} {outcome}", letter, (outcome.upper(), {color: True})

    def begin_gates(self, session: pytest.Session, outcomes: Sequence[str]) -> None:
        """The runs' line has reached 100 %: the gates' letters stand on one of their own.

        A letter that only an evaluation has is explained.
        """
        self._gates.update(outcomes)
        terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        if session.config.get_verbosity() > 0:
            session.testscollected += len(outcomes)
            return
        if terminal is None:
            return
        words = [each for each in OUTCOMES if each in self._observed]
        if words:
            terminal.write(f"\n- means {' or '.join(words)}")
        if getattr(terminal, "showfspath", False):
            terminal.currentfspath = None  # pytest writes the file, `gates`
        else:
            terminal.write(f"\n{GATES} ")
