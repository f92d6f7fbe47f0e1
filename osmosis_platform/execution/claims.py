"""Which scheduler executes which run: a run is taken in one transaction, for as long as a lease.

A scheduler that lives puts its leases off, and one that ends hands its runs over. A run whose lease
is over, without that, was interrupted: it is taken again by any scheduler, unless it may be what
ends them. Of those of which the next interruption is the last, a scheduler executes one at a time,
so that none is given up for what another does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, Select, and_, func, or_, select
from sqlalchemy.orm import Session, aliased

from osmosis_ai.platform.run_kinds import EVALUATION
from pytest_osmosis.escaping import escape_control_chars

from ..database.connection import Database, count
from ..database.models import Run, User, now
from ..runs import logs
from ..runs.records import UNDER_WAY

_INTERRUPTED = "interrupted: the platform was ended, or without its database, while this ran"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claims:
    """The runs of one scheduler."""

    database: Database
    owner: str
    """The scheduler's id."""
    lease_s: float = 20.0
    kinds: tuple[str, ...] = (EVALUATION.name,)
    """Which kinds of runs it takes."""
    of_user: int | None = None
    """How many runs of a user are executed at once; None: as many as there are places."""
    most_interruptions: int = 3
    """After so many a run has failed."""

    def take(self, *, executed: Iterable[str] = ()) -> str | None:
        """Take the run that has waited longest, and return its id; None where none waits.

        Runs that the scheduler executes already are not taken, whose lease may be over for once.
        """
        known = [*executed]
        with self.database.reading() as session:
            queries = (self._interrupted(session), self._waiting(session, known))
            if all(session.scalar(query) is None for query in queries):
                return None
        with self.database.writing() as session:
            self._count_interruptions(session)
            waiting = self._waiting(session, known).with_for_update(skip_locked=True)
            found = session.scalar(waiting)
            run = None if found is None else session.get(Run, found)
            if run is None or not self._has_place(session, run):
                return None
            if run.status == "running":
                if run.executed_by == self.owner:  # which was without its database
                    logs.add(session, run, _INTERRUPTED, level="warning", step="run")
                logs.add(session, run, "the run resumes with what was finished", step="run")
            run.status = "running"
            run.started_at = run.started_at or now()
            self._hold(session, run)
            return run.id

    def keep(self, run_id: str) -> str | None:
        """Put the lease off; return None, or the status of a run that is not ours any more."""
        with self.database.writing() as session:
            run = session.get(Run, run_id, with_for_update=True)
            if run is None or not self.owns(run):
                return "gone" if run is None else run.status
            self._hold(session, run)
            return None

    def status(self, run_id: str) -> str | None:
        """Return None, or the status of a run that is not ours any more."""
        with self.database.reading() as session:
            found = session.execute(
                select(Run.status, Run.executed_by).where(Run.id == run_id)
            ).one_or_none()
        if found is None:
            return "gone"
        return None if found == ("running", self.owner) else found[0]

    def give_back(self, run_id: str) -> None:
        """Hand a run over that has not ended: any scheduler may take it at once."""
        with self.database.writing() as session:
            run = session.get(Run, run_id, with_for_update=True)
            if run is not None and self.owns(run):
                run.executed_by = None
                run.lease_until = self._clock(session)

    def release(self, run_id: str) -> None:
        """Note that everything of a run that was stopped has ended."""
        with self.database.writing() as session:
            run = session.get(Run, run_id, with_for_update=True)
            if run is not None and run.executed_by == self.owner:
                run.lease_until = None

    def owns(self, run: Run) -> bool:
        """Return whether a run is executed by this scheduler, and has not ended."""
        return run.executed_by == self.owner and run.status == "running"

    def _count_interruptions(self, session: Session) -> None:
        """Count that of each run whose scheduler is gone, and end a run that has too many."""
        query = self._interrupted(session).with_for_update(skip_locked=True)
        for run_id in session.scalars(query).all():
            run = session.get_one(Run, run_id)
            run.executed_by = None
            run.interruptions += 1
            logs.add(session, run, _INTERRUPTED, level="warning", step="run")
            if run.interruptions >= self.most_interruptions:
                message = (
                    f"given up after {run.interruptions} interruptions: each time the platform was "
                    "killed or lost while it executed this run, which may be the cause"
                )
                finish(session, run, "failed", message, step="run")
                _log.error("run %s: %s", run_id, message)

    def _interrupted(self, session: Session) -> Select[Any]:
        """Return the query for the ids of runs whose scheduler is gone without a word."""
        return select(Run.id).where(
            UNDER_WAY,
            Run.kind.in_(self.kinds),
            Run.status == "running",
            Run.executed_by != self.owner,
            Run.lease_until < self._clock(session),
        )

    def _waiting(self, session: Session, executed: Sequence[str]) -> Select[Any]:
        """Return the query for the id of the run to take."""
        pending = Run.status == "pending"
        if self.of_user is not None:
            busy = select(Run.creator_id).where(UNDER_WAY, Run.status == "running")
            full = busy.group_by(Run.creator_id).having(func.count() >= self.of_user)
            pending = and_(pending, Run.creator_id.not_in(full))
        begun = and_(Run.status == "running", Run.lease_until < self._clock(session))
        ours, last = aliased(Run), self.most_interruptions - 1
        suspect = select(ours.id).where(ours.id.in_(executed), ours.interruptions >= last)
        query = select(Run.id).where(
            UNDER_WAY,
            Run.kind.in_(self.kinds),
            or_(pending, begun),
            Run.id.not_in(executed),
            or_(Run.interruptions < last, ~suspect.exists()),
        )
        return query.order_by(Run.created_at, Run.id).limit(1)

    def _has_place(self, session: Session, run: Run) -> bool:
        """Whether its user may have one more run executed, asked by one scheduler at a time."""
        if self.of_user is None or run.status == "running":
            return True
        session.get(User, run.creator_id, with_for_update=True)
        ours = (UNDER_WAY, Run.creator_id == run.creator_id, Run.status == "running")
        return count(session, *ours) < self.of_user

    def _hold(self, session: Session, run: Run) -> None:
        run.executed_by = self.owner
        run.lease_until = self._clock(session) + timedelta(seconds=self.lease_s)

    def _clock(self, session: Session) -> datetime:
        """Return the time of the database server, whose clients may have other clocks."""
        if self.database.is_sqlite:  # of one machine
            return now()
        return session.scalars(select(func.clock_timestamp(type_=DateTime(timezone=True)))).one()


def finish(session: Session, run: Run, status: str, message: str, *, step: str) -> None:
    """End a run; the message of one that is not finished is its reason."""
    failed = status != "finished"
    if failed:
        run.results = {**(run.results or {}), "error": escape_control_chars(message)}
    logs.add(session, run, message, level="error" if failed else "info", step=step)
    run.status = status
    run.completed_at = now()
    run.lease_until = None
