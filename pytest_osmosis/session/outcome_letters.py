"""The letters and words that pytest prints for gates, and for runs where gates decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from ..items.protocol import ERRORED, OBSERVED
from ..outcomes import OUTCOMES
from .gate_reports import VERDICT


class OutcomeLetters:
    """A pytest plugin where gates decide: letters and words of gates, and of what they observe."""

    def __init__(self) -> None:
        self._gates: Counter[str] = Counter()
        """How many gates have which outcome."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """A passed gate counts as a gate; an inconclusive one is neither passed nor failed.

        A run that did not pass and fails nothing is counted as what it is.
        """
        if (observed := getattr(report, OBSERVED, None)) is not None:
            status = ERRORED if observed == "error" else observed
            return status, "-", (observed.upper(), {OUTCOMES[observed].color: True})
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
