"""The database while a run is executed: may it continue, lines of its log, figures, its end.

What is written is without the values of the run's secrets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from osmosis_ai.secret import Redactor

from ..database.models import Run
from ..runs import logs
from .claims import Claims, finish

LINES = 5000
"""Of a program's output that a log takes."""
LINE_LENGTH = 2000


@dataclass(slots=True)
class RunWriter:
    """One run in the database, while it is executed."""

    claims: Claims
    run_id: str
    redact: Redactor = field(default_factory=Redactor)
    without_paths: Callable[[str], str] = str
    """Names files as users know them, in what programs print."""
    _lines: int = 0
    _unwritten: list[str] = field(default_factory=list)
    """Lines that the database could not take when they were printed."""

    def say(self, message: str, *, step: str, level: str = "info") -> None:
        """Add a line to the log."""
        text = self.redact(message)
        self._change(lambda session, run: logs.add(session, run, text, level=level, step=step))

    def add_output(self, lines: Iterable[bytes], *, step: str) -> None:
        """Add what a program has printed, up to a limit."""
        found = [*islice(lines, max(0, LINES - self._lines))]
        texts = (self.without_paths(line.decode("utf-8", "replace")) for line in found)
        taken = [self.redact(text)[:LINE_LENGTH] for line in texts if (text := line.rstrip())]
        if self._lines < LINES <= self._lines + len(found):
            taken.append(f"the log takes {LINES:,} lines; what comes now is left out")
        self._lines += len(found)
        self._unwritten += taken
        if not self._unwritten:
            return

        def add(session: Session, run: Run) -> None:
            for text in self._unwritten:
                logs.add(session, run, text, step=step)

        self._change(add)
        self._unwritten.clear()

    @property
    def is_full(self) -> bool:
        """Whether the log takes no more of what programs print."""
        return self._lines >= LINES and not self._unwritten

    def note(self, **facts: Any) -> None:
        """Keep facts of the execution with the results."""
        self._change(lambda session, run: self._note(run, facts))

    def set_figures(self, metrics: dict[str, Any], report: dict[str, Any] | None = None) -> None:
        """Replace the figures, and keep the report where there is one."""

        def set_(session: Session, run: Run) -> None:
            run.metrics = metrics
            if report is not None:
                run.report = report

        self._change(set_)

    def end(self, status: str, message: str, *, step: str) -> None:
        """End the run, unless it has ended already; a failure's message is its reason."""
        text = self.redact(message)

        def end(session: Session, run: Run) -> None:
            if not self.claims.owns(run):
                return
            finish(session, run, status, text, step=step)

        self._change(end)

    @staticmethod
    def _note(run: Run, facts: dict[str, Any]) -> None:
        run.results = {**(run.results or {}), **facts}

    def _change(self, change: Callable[[Session, Run], None]) -> None:
        """Change the run, if no other scheduler has it meanwhile."""
        with self.claims.database.writing() as session:
            run = session.get(Run, self.run_id, with_for_update=True)
            if run is not None and run.executed_by == self.claims.owner:
                change(session, run)


LOOK_S = 0.5


class NotToGoOn(Exception):
    """The run was stopped, another scheduler has it, or the platform ends."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """The status of the run now, or `shutdown`."""


class RunWatch:
    """Looks after one run, and puts its lease off."""

    def __init__(
        self,
        claims: Claims,
        run_id: str,
        shutdown: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._claims = claims
        self._run_id = run_id
        self._shutdown = shutdown
        self._clock = clock
        self._looked = self._kept = clock()

    def check(self) -> None:
        """Raise NotToGoOn where the run is not to continue."""
        if self._shutdown.is_set():
            raise NotToGoOn("shutdown")
        moment = self._clock()
        if moment < self._looked + LOOK_S:
            return
        self._looked = moment
        with self.pass_over_errors():
            self._look(moment)

    @contextmanager
    def pass_over_errors(self) -> Iterator[None]:
        """Pass over an error of the database while the lease holds: no other scheduler has the run.

        Raises:
            SQLAlchemyError: once it may be over.
        """
        try:
            yield
        except SQLAlchemyError:
            if self._clock() >= self._kept + self._claims.lease_s:
                raise

    def _look(self, moment: float) -> None:
        if moment >= self._kept + self._claims.lease_s / 4:
            status = self._claims.keep(self._run_id)
            self._kept = moment
        else:
            status = self._claims.status(self._run_id)
        if status is not None:
            raise NotToGoOn(status)
