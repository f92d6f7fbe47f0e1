"""The exit status of a session, as `git bisect run` reads it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator

import pytest

from ...run_result import REPORT_FIELD
from ...session.gate_reports import VERDICT

FAILED = pytest.StashKey[bool]()
"""Whether a gate failed, or without gates a run, by the code's doing; once results are there."""

BAD, UNTESTABLE = 1, 125


class BisectStatuses:
    """A pytest plugin that stands around the whole session.

    What pytest refuses before that, such as a conftest.py that cannot be imported, ends with 4.
    """

    def __init__(self) -> None:
        self._interrupt: BaseException | None = None
        self._others_failed = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, int | None, int | None]:
        """Translate the status that the session ended with."""
        try:
            status = yield
        except pytest.UsageError as error:
            for line in error.args:
                sys.stderr.write(f"ERROR: {line}\n")
            return UNTESTABLE
        return self._translated(config, status or 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an ordinary test that failed: neither a run nor a gate."""
        is_ours = hasattr(report, REPORT_FIELD) or hasattr(report, VERDICT)
        if report.failed and not is_ours and report.when in ("setup", "call", "teardown"):
            self._others_failed = True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember what ended the session."""
        self._interrupt = self._interrupt or excinfo.value

    def _translated(self, config: pytest.Config, status: int) -> int:
        if status == pytest.ExitCode.OK:
            return status
        if status == pytest.ExitCode.TESTS_FAILED:
            is_bad = self._others_failed or config.stash.get(FAILED, False)
            return BAD if is_bad else UNTESTABLE
        if status == pytest.ExitCode.INTERRUPTED:
            return self._interrupted()
        return UNTESTABLE

    def _interrupted(self) -> int:
        """128 and the signal, at which Git stops; pytest ends so for other reasons too."""
        found = self._interrupt
        if isinstance(found, (pytest.Session.Interrupted, pytest.exit.Exception)):
            return UNTESTABLE
        name = str(found).removeprefix("by ")
        known = name in signal.Signals.__members__
        return 128 + (signal.Signals[name] if known else signal.SIGINT)
