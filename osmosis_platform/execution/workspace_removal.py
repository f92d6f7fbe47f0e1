"""Removing a workspace: who can reach it, then its runs some at a time, then the rest.

Each step is a short transaction, so that others can write in between, and one that was ended
half-way is begun again. Files go before the rows that name them. Environments are left to the
sweep, which keeps those that were used last.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from osmosis_ai.platform.answers import ENDED
from pytest_osmosis.escaping import counted

from ..accounts import removal
from ..accounts.registry import AccountError, find_workspace
from ..database.connection import Database
from ..database.models import Dataset, Run, Workspace
from ..environments.store import DOWNLOADS, FOLDER
from ..locks import locked_if_free
from ..runs import records
from .run_folder import RunFolder

RUNS_AT_ONCE = 50
_PAUSE_S = 0.05
"""Between steps: SQLite lets a writer that waits try again only now and then."""


def remove_workspace(database: Database, data: Path, name: str) -> int:
    """Remove a workspace with its files; return how many runs it had.

    Raises:
        AccountError: where there is none, or runs of it are under way.
        OSError: where a file cannot be removed; what is left goes when it is begun again.
    """
    with database.reading() as session:
        workspace = find_workspace(session, name)
        runs = session.scalars(select(Run.id).where(Run.workspace_id == workspace.id)).all()
    kept = {folder.name for folder in data.glob("runs/*")}
    for run in kept.intersection(runs):
        with _unused(RunFolder.of_run(data, run), name):
            pass  # nothing is removed where one is used
    with database.writing() as session:
        _close(session, workspace)
    count = 0
    while runs := _some_runs(database, workspace.id):
        for run in runs:
            run_folder = RunFolder.of_run(data, run)
            with _unused(run_folder, name):
                _remove(run_folder.folder)
        with database.writing() as session:
            removal.remove_runs(session, runs)
        count += len(runs)
        time.sleep(_PAUSE_S)
    with database.reading() as session:
        datasets = session.scalars(select(Dataset.id).where(Dataset.workspace_id == workspace.id))
        folders = [data / "datasets" / dataset for dataset in datasets]
    for folder in (*folders, data / FOLDER / DOWNLOADS / workspace.id):
        _remove(folder)
    with database.writing() as session:
        _close(session, workspace)  # a request may have been on its way
        removal.remove_workspace(session, workspace.id)
    return count


def _close(session: Session, workspace: Workspace) -> None:
    """Let no one reach it; refuse it with the runs that were there at that moment."""
    removal.close_workspace(session, workspace.id)
    check_ended(session, workspace)


def check_ended(session: Session, workspace: Workspace) -> None:
    """Refuse a workspace with runs under way."""
    if going := records.going_on(session, Run.workspace_id == workspace.id):
        names = ", ".join(run.name for run in going[:3]) + (", …" if len(going) > 3 else "")
        raise AccountError(
            f"{workspace.name} has {counted(len(going), 'run')} under way ({names}); stop them on "
            "its page or with `osmosis eval stop`, then remove it"
        )


def _some_runs(database: Database, workspace_id: str) -> Sequence[str]:
    ended = (Run.workspace_id == workspace_id, Run.status.in_(ENDED))
    with database.reading() as session:
        return session.scalars(select(Run.id).where(*ended).limit(RUNS_AT_ONCE)).all()


@contextmanager
def _unused(run_folder: RunFolder, name: str) -> Iterator[None]:
    """Hold the locks of a run: a process of it may live, although the run has ended."""
    with ExitStack() as held:
        for lock in (run_folder.lock, run_folder.trainer_lock):
            if lock.exists() and not held.enter_context(locked_if_free(lock)):
                raise AccountError(
                    f"a process of a run of {name} still lives, which ends in some seconds; then "
                    "remove it again"
                )
        yield


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
