"""The letters and words that pytest prints for gates, and for runs below the threshold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ..items.protocol import BELOW
from ..run_result import REPORT_FIELD
from .gate_reports import VERDICT


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
