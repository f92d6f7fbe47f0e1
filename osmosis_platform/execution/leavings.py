"""The files of a workspace that is removed: its runs, datasets, and what builds have downloaded.

Its environments are left to the sweep, which keeps those that were used last.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.models import Dataset, Run
from ..environments.store import DOWNLOADS, FOLDER
from ..locks import locked_if_free
from .room import Room


@dataclass(frozen=True, slots=True)
class Leavings:
    """The folders of a workspace in the platform's data."""

    runs: Sequence[Room]
    others: Sequence[Path]

    @classmethod
    def of_workspace(cls, session: Session, data: Path, workspace_id: str) -> Leavings:
        """Find them by what the database has."""
        runs = session.scalars(select(Run.id).where(Run.workspace_id == workspace_id)).all()
        datasets = session.scalars(select(Dataset.id).where(Dataset.workspace_id == workspace_id))
        others = [data / "datasets" / dataset for dataset in datasets]
        others.append(data / FOLDER / DOWNLOADS / workspace_id)
        return cls([Room.of_run(data, run) for run in runs], others)

    def are_used(self) -> bool:
        """Return whether a process of a run lives, although the run may have ended."""
        for room in self.runs:
            for lock in (room.lock, room.trainer_lock):
                if lock.exists():
                    with locked_if_free(lock) as is_free:
                        if not is_free:
                            return True
        return False

    def remove(self) -> None:
        """Remove all of them; raise OSError where one cannot be."""
        for folder in (*(room.folder for room in self.runs), *self.others):
            if folder.exists():
                shutil.rmtree(folder)
