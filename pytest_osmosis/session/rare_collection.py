"""Collect garbage rarely while an evaluation runs.

Items, reports and results live to the end of the session. The garbage collector walks them again
and again, finds nothing, and takes a quarter of the processor time of a rollout for it. So the
first threshold is raised before what the rollouts need is imported, and the objects that exist once
they begin are frozen.

Both are undone when the session ends, before the process does: Python closes no file that a module
of the user's still holds while that is frozen, and what was written to it last would be lost.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from ..items.runner import is_ordinary

FIRST_THRESHOLD = 10_000
"""New objects before the youngest are looked through; Python's own is 700 or 2,000."""


@contextmanager
def collected_rarely(config: pytest.Config, items: Iterable[pytest.Item]) -> Iterator[None]:
    """Raise the threshold until the session ends; freeze what exists at the end of the block.

    Not beside ordinary tests; and a collector that is disabled, or whose first threshold is 0, is
    left alone. A process without items, such as xdist's controller, runs no test of its own.
    """
    first, *others = gc.get_threshold()
    is_off = not (first and gc.isenabled())
    if is_off or any(map(is_ordinary, items)):
        yield
        return
    if first < FIRST_THRESHOLD:
        gc.set_threshold(FIRST_THRESHOLD, *others)
        config.add_cleanup(partial(_put_back, first))
    yield
    if not gc.get_freeze_count():  # else the host has frozen what it wants so
        gc.freeze()
        config.add_cleanup(gc.unfreeze)


def _put_back(first: int) -> None:
    """Put the threshold back, unless other code has set it meanwhile."""
    now, *others = gc.get_threshold()
    if now == FIRST_THRESHOLD:
        gc.set_threshold(first, *others)
