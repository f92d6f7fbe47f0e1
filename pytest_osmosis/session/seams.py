"""The four seams at which features take part in a session.

A session is planned, around a run, a run has ended, a suite has ended: a feature overrides the
methods of those that it needs. Each process of a session has features of its own; the process that
reports is the only one that checks, opens, shows and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import pytest

    from ..analysis.gates.names import Gate
    from ..analysis.planned_rows import PlannedRows
    from ..analysis.score_table import ScoreTable
    from ..reports.formats import Sections
    from ..rollouts.around import AroundRuns
    from ..rollouts.suite import Suite
    from ..run_result import RunResult, SuiteInfo
    from ..spec import EvalSpec, SessionSpec
    from ..suite_results import EvalResult, SuiteResult


DecidingGates: TypeAlias = "Callable[[], Iterable[tuple[SuiteInfo, Sequence[Gate], PlannedRows]]]"


class Halt(Protocol):
    """Start no further run."""

    def __call__(self, reason: str, *, spent: Callable[[], str] | None = None) -> None:
        """`spent`: a budget is; returns the reason with what the runs in flight have used too."""


class Feature:
    """A feature in one process of a session; does nothing unless a method is overridden.

    Methods of the first seam may raise ConfigurationError, with a sentence for the user.
    """

    name = ""
    """As in the table, where it is sent texts."""
    shows_environment = False
    """Whether it shows where the session ran: Git is asked only then."""

    def __init__(self, config: pytest.Config, part: Any) -> None:
        """`part` is its part of the spec."""

    # ---- a session is planned

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Return the session with what the feature changes of it, in every process."""
        return spec

    def check(self, spec: SessionSpec) -> None:
        """Check what needs no rows and no code of the user's, in the process that reports."""

    def prepare(self, spec: EvalSpec, session: SessionSpec, *, validate: bool) -> Suite | None:
        """Return the suite of an evaluation, in place of the one that the core would prepare."""
        return None

    def describe(self, suite: Suite) -> SuiteInfo:
        """Return what a suite is, with what the feature knows of its rows, in every process."""
        return suite.info

    def check_rows(self, suites: Mapping[str, Suite]) -> None:
        """Check what needs the rows, in the process that reports, and where items are listed.

        `suites` has those of tests too, once they are collected.
        """

    def known(
        self,
        suites: Sequence[SuiteInfo],
        folder_of: Callable[[SuiteInfo], Path],
        rows_of: Callable[[SuiteInfo], PlannedRows],
    ) -> Iterable[str]:
        """Find what belongs to suites before their gates are checked; return lines to show.

        In the process that reports. `folder_of`: where each is kept; `rows_of`: its rows, also
        those of which none has run.
        """
        return ()

    def references(self, suite: SuiteInfo) -> Mapping[str, int | None]:
        """Return what gates may subtract from the metrics of a suite, in every process.

        By its name in gates, with its runs a row as far as they are known.
        """
        return {}

    def follow(self, gates: DecidingGates, halt: Halt) -> None:
        """Take what decides, before the first run, in the process that reports.

        `gates` gives every suite with the gates that decide on it and its rows, once runs end.
        """

    def open(self, suites: Iterable[Suite], halt: Halt) -> None:
        """Open what is needed before the first run, in the process that reports.

        `halt` has no further run started, for a reason; from any thread.
        """

    def inputs(self) -> Sequence[str]:
        """Return patterns of files that results depend on: they belong to the fingerprint."""
        return ()

    def header(self, suites: Iterable[Suite]) -> Iterable[str]:
        """Return lines for the header of the session."""
        return ()

    # ---- around a run

    def around_runs(
        self, suites: Mapping[str, Suite], send: Callable[[str], None] | None
    ) -> AroundRuns | None:
        """Return what stands around the runs of this process.

        `send`: where this process shares no files with the one that reports, it sends a text to
        `received` of the feature there.
        """
        return None

    def received(self, text: str) -> None:
        """Take what the feature in another process has sent; from any thread."""

    # ---- a run has ended

    def first_run(self) -> None:
        """Note that the first run starts, in the process that reports; from any thread."""

    def run_made(self, run: RunResult) -> None:
        """Take a run that this session has made, with what it took; as `run_ended`."""

    def run_ended(self, run: RunResult) -> None:
        """Take the result of a run, once, in the process that reports; from any thread."""

    # ---- a suite has ended

    def tables(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> Mapping[str, ScoreTable]:
        """Return what gates subtract from a suite that has ended, by the names of `references`."""
        return {}

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result of the session with what the feature adds to its suites."""
        return result

    def write(self, result: EvalResult, sections: Sections) -> Iterable[str]:
        """Write files of the feature; return a sentence about each that cannot be written.

        `sections` gives what pytest reports of a run that did not pass.
        """
        return ()

    def lines(self, result: EvalResult) -> Iterable[str]:
        """Return lines for the end of the session's summary."""
        return ()

    def close(self) -> Iterable[str]:
        """Release everything; return lines for the terminal. Harmless when repeated."""
        return ()

    # ---- processes on other machines

    def elsewhere(self, root: Path, folder: str) -> tuple[Mapping[str, Path], Sequence[str]]:
        """Return what processes on other machines need of the feature.

        Files by their places in the copy of `root`, and arguments of pytest, which is started in
        `folder` of the copy.
        """
        return {}, ()
