"""Collect garbage rarely while an evaluation runs.

Items, reports and results live to the end of the session. The garbage collector walks them again
and again, finds nothing, and takes a quarter of the processor time of a rollout for it. So the
first threshold is raised before what the rollouts need is imported, and the objects that exist once
they begin are frozen.

What is frozen stays so: to walk it once more at the end would take a quarter of a second. What has
come since is frozen when the process exits, behind the collections of pytest's own: Python would
walk it several times more, for a tenth of a second after 2,000 rollouts.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial

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
    _freeze()


def _put_back(first: int) -> None:
    """Put the threshold back, unless other code has set it meanwhile."""
    now, *others = gc.get_threshold()
    if now == FIRST_THRESHOLD:
        gc.set_threshold(first, *others)


@cache
def _freeze() -> None:
    """Freeze what exists, once a process: a later session would freeze the garbage of this one."""
    gc.freeze()
    atexit.register(gc.freeze)
