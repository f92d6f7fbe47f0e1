"""Runs in the database: finding, listing and stopping them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, or_, select
from sqlalchemy.orm import Session, defer

from osmosis_ai.platform.answers import ENDED
from osmosis_ai.platform.run_kinds import RunKind

from ..accounts.tokens import CallerWorkspace
from ..database.connection import count, lock
from ..database.models import Run, now
from ..errors import Refused, not_found
from . import logs

UNDER_WAY = and_(Run.completed_at.is_(None), Run.status.not_in(ENDED))
"""An index has the runs that meet the first condition, which the second implies."""
_WITHOUT_REPORT = (defer(Run.executed_by), defer(Run.lease_until), defer(Run.interruptions))
"""SQLite keeps these behind the report, and reads all of that to reach them."""


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
    order = (*first, Run.created_at.desc(), Run.id)
    found = select(Run.id).where(*ours).order_by(*order).limit(limit).offset(offset)
    query = select(Run).where(Run.id.in_(found)).order_by(*order)
    runs = session.scalars(query.options(*_WITHOUT_REPORT)).all()
    return runs, count(session, *ours)


def is_local(run: Run) -> bool:
    """Return whether it ran on a user's machine, and was uploaded."""
    return bool((run.results or {}).get("local"))


def report_text(session: Session, run: Run) -> bytes | None:
    """Return the report of a run as it is stored, for others to parse; None without one."""
    text = session.scalar(select(cast(Run.report, Text)).where(Run.id == run.id))
    return None if text is None else text.encode("utf-8", "replace")


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
