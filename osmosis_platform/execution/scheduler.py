"""Takes runs that wait, and executes some at a time; removes what those that ended have left."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from osmosis_ai.platform.answers import ENDED

from ..database.connection import Database, cause
from ..database.models import Run, now
from ..locks import locked_if_free
from ..runs.records import is_local
from . import deletion
from .execute import execute
from .run_folder import RunFolder
from .services import Services

IDLE_S = 0.5
CLEANING_S = 3600.0
_log = logging.getLogger(__name__)


class Scheduler:
    """Executes what was submitted, `max_runs` at once, from `start` to `stop`."""

    def __init__(self, services: Services, *, max_runs: int) -> None:
        self._services = services
        self._free = threading.Semaphore(max_runs)
        self._threads: dict[str, threading.Thread] = {}
        """Of the runs that are executed, by their ids."""
        self._taker = threading.Thread(
            target=self._take_runs, name="osmosis-scheduler", daemon=True
        )
        self._trouble = ""
        """Why no run could be taken when it was tried last."""
        self._cleaner = threading.Thread(target=self._clean, name="osmosis-cleaning", daemon=True)

    @property
    def takes_runs(self) -> bool:
        """Whether a run that waits is going to be taken."""
        return self._taker.is_alive() and not self._services.shutdown.is_set()

    def start(self) -> None:
        """Begin to take runs."""
        self._taker.start()
        self._cleaner.start()

    def stop(self) -> None:
        """End what is executed, which resumes at the next start; return once all has ended."""
        self._services.shutdown.set()
        self._taker.join()
        self._cleaner.join()
        for thread in [*self._threads.values()]:
            thread.join()

    def _clean(self) -> None:
        """Remove what is not kept, now and every hour."""
        services = self._services
        cleaning = Cleaning(services.data, services.claims.database, services.keep_days)
        while not services.shutdown.is_set():
            try:
                cleaning.sweep()
                if services.environments is not None:
                    services.environments.sweep()
            except SQLAlchemyError as error:
                _log.error("nothing can be removed: %s", cause(error))
            services.shutdown.wait(CLEANING_S)

    def _take_runs(self) -> None:
        shutdown = self._services.shutdown
        while not shutdown.is_set():
            if not self._free.acquire(timeout=IDLE_S):
                continue
            run_id = self._take()
            if run_id is None:
                self._free.release()
                shutdown.wait(IDLE_S)
                continue
            thread = threading.Thread(
                target=self._execute, args=(run_id,), name=f"run-{run_id}", daemon=True
            )
            self._threads[run_id] = thread
            _log.info("run %s: taken", run_id, extra=_of(run_id))
            thread.start()

    def _take(self) -> str | None:
        try:
            found = self._services.claims.take(executed=[*self._threads])
        except SQLAlchemyError as error:  # it may be locked, full or away for a while
            self._note_trouble(cause(error))
            return None
        self._note_trouble("")
        return found

    def _note_trouble(self, trouble: str) -> None:
        """Log a trouble of the database when it begins, and its end: it is tried twice a second."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            _log.error("no run can be taken: %s", trouble)
        else:
            _log.warning("runs can be taken again")

    def _execute(self, run_id: str) -> None:
        try:
            execute(self._services, run_id)
        except SQLAlchemyError as error:  # its lease ends, and it is taken again
            _log.error("run %s: %s", run_id, cause(error), extra=_of(run_id))
        finally:
            _log.info("run %s: ended, or handed back", run_id, extra=_of(run_id))
            del self._threads[run_id]
            self._free.release()


def _of(run_id: str) -> dict[str, dict[str, str]]:
    """Further fields of a log of JSON lines."""
    return {"osmosis_facts": {"run_id": run_id}}


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
                self._look_at(RunFolder(folder))
            except OSError as error:
                _log.error("run %s: its folder cannot be removed: %s", folder.name, error.strerror)

    def _look_at(self, run_folder: RunFolder) -> None:
        with self.database.reading() as session:
            run = session.get(Run, run_folder.folder.name)
        if run is None or run.status not in ENDED:
            return
        with locked_if_free(run_folder.lock) as is_free:
            if not is_free:
                return  # something of it still runs
            run_folder.clean()
            oldest = now() - timedelta(days=self.keep_days) - _IMPORTING
            ended = run.created_at if is_local(run) else run.completed_at
            if ended is not None and ended <= oldest:
                run_folder.forget()
