"""Whether a run is to go on: looked up in the database while it is executed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from .claims import Claims

LOOK_S = 0.5


class NotToGoOn(Exception):
    """The run was stopped, another scheduler has it, or the platform ends."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """The status of the run now, or `shutdown`."""


class Watch:
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
        """Raise NotToGoOn where the run is not to go on."""
        if self._shutdown.is_set():
            raise NotToGoOn("shutdown")
        moment = self._clock()
        if moment < self._looked + LOOK_S:
            return
        self._looked = moment
        with self.patience():
            self._look(moment)

    @contextmanager
    def patience(self) -> Iterator[None]:
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
