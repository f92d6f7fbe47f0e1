"""Takes runs that wait, and executes some at a time, each in a thread of its own."""

from __future__ import annotations

import logging
import threading

from sqlalchemy.exc import SQLAlchemyError

from ..database.failure import cause
from .cleaning import Cleaning
from .execute import execute
from .services import Services

IDLE_S = 0.5
CLEANING_S = 3600.0
_log = logging.getLogger(__name__)


class Scheduler:
    """Executes what was submitted, from `start` to `stop`."""

    def __init__(self, services: Services, *, max_runs: int) -> None:
        self.max_runs = max_runs
        """Executed at once, at most."""
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
    def executing(self) -> int:
        """How many runs are executed now."""
        return len(self._threads)

    @property
    def takes_runs(self) -> bool:
        """Whether a run that waits is going to be taken."""
        return self._taker.is_alive() and not self._services.shutdown.is_set()

    def start(self) -> None:
        """Begin to take runs."""
        self._taker.start()
        self._cleaner.start()

    def stop(self) -> None:
        """End what is executed, which goes on with the next start; return once all has ended."""
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
            found = self._services.claims.take(besides=[*self._threads])
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
    """What a log of JSON lines has besides."""
    return {"osmosis_facts": {"run_id": run_id}}
