"""Whether a run is to go on: looked up in the database while it is executed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

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
        if moment >= self._kept + self._claims.lease_s / 4:
            self._kept = moment
            status = self._claims.keep(self._run_id)
        else:
            status = self._claims.status(self._run_id)
        if status is not None:
            raise NotToGoOn(status)
