"""Removes what runs that have ended have left in the platform's data.

A work tree and what belongs to it go when the run ends, here only where the platform was killed at
that moment. Journal, conversations and outputs are kept for some days; the report and the log are
in the database. What a trainer has left is kept.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from osmosis_ai.platform.answers import ENDED

from ..database.connection import Database
from ..database.models import Run, now
from ..locks import locked_if_free
from . import deletion
from .room import Room

_IMPORTING = timedelta(hours=1)
"""After the end of a run what it has left may still be read into the database."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How long what runs have left is kept."""

    data: Path
    database: Database
    keep_days: int

    def sweep(self) -> None:
        """Look at the folder of every run, and at what was deleted."""
        deletion.sweep(self.database, self.data)
        for folder in sorted(self.data.absolute().glob("runs/*/")):
            try:
                self._look_at(Room(folder))
            except OSError as error:
                _log.error("run %s: its folder cannot be removed: %s", folder.name, error.strerror)

    def _look_at(self, room: Room) -> None:
        with self.database.reading() as session:
            run = session.get(Run, room.folder.name)
        if run is None or run.status not in ENDED:
            return
        with locked_if_free(room.lock) as is_free:
            if not is_free:
                return  # something of it still runs
            room.clean()
            oldest = now() - timedelta(days=self.keep_days) - _IMPORTING
            if run.completed_at is not None and run.completed_at <= oldest:
                room.forget()
