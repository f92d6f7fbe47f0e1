"""Runs in the database: submitting, finding, listing and stopping them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, defer

from osmosis_ai.platform.answers import ENDED

from ..accounts.tokens import CallerWorkspace
from ..database.connection import lock
from ..database.models import Dataset, Run, now
from ..errors import Refused, not_found
from ..identifiers import new_run_name
from . import logs
from .kinds import RunKind
from .submissions import Submission

UNDER_WAY = and_(Run.completed_at.is_(None), Run.status.not_in(ENDED))
"""An index has the runs that meet the first condition, which the second implies."""
_NAME_TRIES = 20
_WITHOUT_REPORT = (defer(Run.executed_by), defer(Run.lease_until), defer(Run.interruptions))
"""SQLite keeps these behind the report, and reads all of that to reach them."""


def submit(
    session: Session,
    kind: RunKind,
    submission: Submission,
    *,
    user_id: str,
    workspace: CallerWorkspace,
    find_dataset: Callable[[], Dataset],
    idempotency_key: str | None = None,
) -> tuple[Run, bool]:
    """Record a run, or find the one that the same request has made; and whether it is new.

    What a new one needs is looked for by `find_dataset`, which refuses it where that is missing.
    """
    known = partial(_submitted, session, kind, submission, user_id, workspace, idempotency_key)
    if (earlier := known()) is not None:
        return earlier, False
    dataset = find_dataset()
    run = Run(
        workspace_id=workspace.id,
        creator_id=user_id,
        kind=kind.name,
        name=_free_name(session, workspace.id),
        submission=submission.section,
        submission_digest=submission.digest,
        idempotency_key=idempotency_key,
        dataset_id=dataset.id,
    )
    try:
        with session.begin_nested():
            session.add(run)
    except IntegrityError:  # the same request came twice at once
        if (other := known()) is None:
            raise
        return other, False
    logs.add(session, run, "the run was submitted; it waits to be executed", step="submit")
    return run, True


def count_going_on(session: Session, user_id: str) -> int:
    """Return how many runs of a user have not ended."""
    ours = (Run.creator_id == user_id, UNDER_WAY)
    return session.scalar(select(func.count()).select_from(Run).where(*ours)) or 0


def going_on(session: Session, *conditions: ColumnElement[bool]) -> Sequence[Run]:
    """Return the runs that meet conditions and have not ended."""
    query = select(Run).where(*conditions, UNDER_WAY).order_by(Run.created_at)
    return session.scalars(query).all()


def stop_all(session: Session, user_id: str) -> int:
    """Stop the runs of a user that continue; return how many there were."""
    going = going_on(session, Run.creator_id == user_id)
    for run in going:
        if lock(session, run) and run.status not in ENDED:  # it may have ended since
            _stop(session, run)
    return len(going)


def find(
    session: Session, kind: RunKind | None, workspace: CallerWorkspace, name_or_id: str
) -> Run:
    """Return a run of the workspace, of this kind or of any, by its name or id."""
    query = select(Run).where(Run.workspace_id == workspace.id)
    if kind is not None:
        query = query.where(Run.kind == kind.name)
    wanted = or_(Run.id == name_or_id, Run.name == name_or_id)
    run = session.scalar(query.where(wanted).order_by(Run.name == name_or_id).limit(1))
    if run is None:
        raise not_found("run" if kind is None else kind.noun)
    return run


def newest(
    session: Session,
    kind: RunKind,
    workspace: CallerWorkspace,
    *,
    limit: int,
    offset: int,
    conditions: Sequence[ColumnElement[bool]] = (),
    first: Sequence[ColumnElement[Any]] = (),
) -> tuple[Sequence[Run], int]:
    """Return some runs that meet conditions, and how many do: by `first`, then the newest first."""
    ours = (Run.workspace_id == workspace.id, Run.kind == kind.name, *conditions)
    total = session.scalar(select(func.count()).select_from(Run).where(*ours)) or 0
    order = (*first, Run.created_at.desc(), Run.id)
    found = select(Run.id).where(*ours).order_by(*order).limit(limit).offset(offset)
    query = select(Run).where(Run.id.in_(found)).order_by(*order)
    return session.scalars(query.options(*_WITHOUT_REPORT)).all(), total


def stop(session: Session, kind: RunKind, run: Run) -> Run:
    """Stop a run; one that is stopped already stays as it is."""
    if not lock(session, run):  # it may also end at this moment
        raise not_found(kind.noun)
    if run.status == "stopped":
        return run
    if run.status in ENDED:
        message = f"the {kind.noun} {run.name} has ended already: it is {run.status}"
        raise Refused(409, "already_ended", message, details={"status": run.status})
    _stop(session, run)
    return run


def _stop(session: Session, run: Run) -> None:
    run.status = "stopped"
    run.completed_at = now()
    logs.add(session, run, "the run was stopped", step="stop")
    session.flush()


def _submitted(
    session: Session,
    kind: RunKind,
    submission: Submission,
    user_id: str,
    workspace: CallerWorkspace,
    idempotency_key: str | None,
) -> Run | None:
    """Return the run that a request with this key has made; refuse a key of another submission."""
    if idempotency_key is None:
        return None
    found = session.scalar(
        select(Run).where(
            Run.workspace_id == workspace.id,
            Run.creator_id == user_id,
            Run.kind == kind.name,
            Run.idempotency_key == idempotency_key,
        )
    )
    if found is not None and found.submission_digest != submission.digest:
        raise Refused(
            409,
            "idempotency_conflict",
            "this Idempotency-Key was used for another submission; use a new one",
        )
    return found


def _free_name(session: Session, workspace_id: str) -> str:
    for _ in range(_NAME_TRIES):
        name = new_run_name()
        taken = select(Run.id).where(Run.workspace_id == workspace_id, Run.name == name)
        if session.scalar(taken) is None:
            return name
    raise AssertionError("no free name for a run")
