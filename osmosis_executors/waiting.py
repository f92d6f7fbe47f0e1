"""Waiting for a program that may be stopped meanwhile, or take too long."""

from __future__ import annotations

import time
from collections.abc import Callable

from .job import Running

POLL_S = 0.25
ENDING_S = 10.0
"""How long what is killed may take to end."""


def wait_for_end(
    running: Running,
    check: Callable[[], None],
    *,
    time_s: float | None = None,
    grace_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> int | None:
    """Return the exit status; None for a program that was stopped because its time was over.

    `check` is called now and then; where it raises, the program is stopped. One that was stopped
    is given its grace to end, so that nothing of it is left when this returns.
    """
    end = None if time_s is None else clock() + time_s
    try:
        while (status := running.wait(POLL_S)) is None:
            check()
            if end is not None and clock() > end:
                return None
        return status
    finally:
        running.stop()
        running.wait(grace_s + ENDING_S)
