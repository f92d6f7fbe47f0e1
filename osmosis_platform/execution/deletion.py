"""Deleting datasets, runs and workspaces: first their rows, in one transaction, then their files.

A marker is on disk before the transaction ends: where the process dies in between, it says which
files are left, and the sweep removes them. A folder that merely has no row is left alone, since the
platform may have been started with another database.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete, event, select
from sqlalchemy.orm import Session

from osmosis_ai.platform.answers import ENDED
from osmosis_ai.platform.run_kinds import RunKind
from pytest_osmosis.escaping import counted

from ..accounts import registry
from ..database.connection import Database, lock
from ..database.models import Dataset, LogLine, Run, Workspace, now
from ..datasets.records import DELETED, IMPORTING, abandoned
from ..environments.store import DOWNLOADS, FOLDER
from ..errors import Refused, not_found
from ..runs import records

_MARKERS = "deleting"
_TABLES: dict[str, type[Dataset | Run]] = {"datasets": Dataset, "runs": Run}
"""By the folder that has the files, each in one named by the id of its row."""
_UNDECIDED_S = 3600.0
"""How long a marker is kept whose row is still there: its transaction may continue."""
RUNS_AT_ONCE = 50
"""In one transaction, where a workspace is removed."""
_PAUSE_S = 0.05
"""Then: SQLite lets a writer that waits try again only now and then."""
_log = logging.getLogger(__name__)


def delete_dataset(session: Session, data: Path, dataset: Dataset) -> None:
    """Delete a dataset; refuse one of runs that have not ended.

    Its row stays, without its name, for runs that have ended.
    """
    if not lock(session, dataset):
        raise not_found("dataset")
    ours = (Run.workspace_id == dataset.workspace_id, Run.dataset_id == dataset.id)
    if going := records.going_on(session, *ours):
        names = _names(going)
        message = (
            f"{dataset.file_name} is used by runs that have not ended ({names}): stop them first"
        )
        raise Refused(409, "in_use", message, details={"runs": [run.name for run in going]})
    remove_later(session, data / "datasets" / dataset.id)
    if session.scalar(select(Run.id).where(*ours).limit(1)) is None:
        session.delete(dataset)
    else:
        dataset.status, dataset.file_name, dataset.error = DELETED, "", None


def delete_run(session: Session, data: Path, kind: RunKind, run: Run) -> None:
    """Delete a run that has ended, with its log and report; refuse one whose processes may live."""
    if not lock(session, run):
        raise not_found(kind.noun)
    details = {"status": run.status}
    if run.status not in ENDED:
        message = f"the {kind.noun} {run.name} is {run.status}: stop it first"
        raise Refused(409, "not_ended", message, details=details)
    if run.lease_until is not None and run.lease_until > now():
        message = f"processes of the {kind.noun} {run.name} are ending: try again in some seconds"
        raise Refused(409, "ending", message, details=details)
    dataset = run.dataset
    remove_later(session, data / "runs" / run.id)
    session.execute(delete(LogLine).where(LogLine.run_id == run.id))
    session.delete(run)
    session.flush()
    others = (Run.workspace_id == dataset.workspace_id, Run.dataset_id == dataset.id)
    if dataset.status == DELETED and session.scalar(select(Run.id).where(*others)) is None:
        session.delete(dataset)


def remove_workspace(database: Database, data: Path, name: str) -> int:
    """Remove a workspace with all that it has; return how many runs it had.

    Raises:
        AccountError: where there is none, or runs of it are under way.
    """
    with database.writing() as session:
        workspace = registry.find_workspace(session, name)
        _close(session, workspace)
        home = workspace.id
        runs = session.scalars(select(Run.id).where(Run.workspace_id == home)).all()
    for start in range(0, len(runs), RUNS_AT_ONCE):  # others write in between
        some = runs[start : start + RUNS_AT_ONCE]
        with database.writing() as session:
            for run_id in some:
                remove_later(session, data / "runs" / run_id)
            session.execute(delete(LogLine).where(LogLine.run_id.in_(some)))
            session.execute(delete(Run).where(Run.id.in_(some)))
        time.sleep(_PAUSE_S)
    with database.writing() as session:
        _close(session, workspace)  # a request may have been on its way
        for dataset in session.scalars(select(Dataset.id).where(Dataset.workspace_id == home)):
            remove_later(session, data / "datasets" / dataset)
        registry.remove_workspace(session, home)
    if (downloads := data / FOLDER / DOWNLOADS / home).exists():
        shutil.rmtree(downloads, ignore_errors=True)
    return len(runs)


def _close(session: Session, workspace: Workspace) -> None:
    registry.close_workspace(session, workspace.id)
    check_ended(session, workspace)


def check_ended(session: Session, workspace: Workspace) -> None:
    """Refuse a workspace with runs under way, or with processes that are ending."""
    ours = Run.workspace_id == workspace.id
    if going := records.going_on(session, ours):
        raise registry.AccountError(
            f"{workspace.name} has {counted(len(going), 'run')} under way ({_names(going)}); stop "
            "them on its page or with `osmosis eval stop`, then remove it"
        )
    if session.scalar(select(Run.id).where(ours, Run.lease_until > now()).limit(1)) is not None:
        raise registry.AccountError(
            f"processes of a run of {workspace.name} are ending: try again in some seconds"
        )


def _names(runs: Sequence[Run]) -> str:
    return ", ".join(run.name for run in runs[:3]) + (", …" if len(runs) > 3 else "")


def sweep(database: Database, data: Path) -> None:
    """Remove what deletions have left, and uploads that were begun a week ago."""
    with database.writing() as session:
        for dataset in abandoned(session):
            if dataset.status == IMPORTING:  # it may have been about to become a run
                remove_later(session, data / "runs" / dataset.id)
            delete_dataset(session, data, dataset)
    for marker in sorted((data / _MARKERS).glob("*-*")):
        kind, _, row_id = marker.name.partition("-")
        with database.reading() as session:
            table = _TABLES[kind]
            status = session.scalar(select(table.status).where(table.id == row_id))
        if status in (None, DELETED):
            _remove(data / kind / row_id)
        elif marker.stat().st_mtime < time.time() - _UNDECIDED_S:
            marker.unlink()


def remove_later(session: Session, folder: Path) -> None:
    """Remove a folder once the transaction has ended well."""
    marker = _marker_of(folder)
    marker.parent.mkdir(mode=0o700, exist_ok=True)
    marker.touch(mode=0o600)
    event.listen(session, "after_commit", lambda _: _remove(folder), once=True)


def _remove(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        _marker_of(folder).unlink(missing_ok=True)
    except OSError as error:  # the next sweep tries again
        _log.error("%s %s cannot be removed: %s", folder.parent.name, folder.name, error.strerror)


def _marker_of(folder: Path) -> Path:
    return folder.parent.parent / _MARKERS / f"{folder.parent.name}-{folder.name}"
