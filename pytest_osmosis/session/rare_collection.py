"""Collect garbage rarely while an evaluation runs.

Items, reports and results live to the end of the session. The garbage collector walks them again
and again, finds nothing, and takes a quarter of the processor time of a rollout for it. So the
objects that exist when rollouts begin are frozen, and the first threshold is raised meanwhile.

What is frozen stays so: to walk it once more at the end would take a quarter of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import cache, partial

import pytest

from ..items.runner import is_ordinary

FIRST_THRESHOLD = 10_000
"""New objects before the youngest are looked through; Python's own is 700 or 2,000."""


def collect_rarely(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Freeze what exists, and raise the threshold until the session ends.

    Not beside ordinary tests; and a collector that is disabled, or whose first threshold is 0, is
    left alone. A process without items, such as xdist's controller, runs no test of its own.
    """
    first, *others = gc.get_threshold()
    is_off = not (first and gc.isenabled())
    if is_off or any(map(is_ordinary, items)):
        return
    _freeze()
    if first < FIRST_THRESHOLD:
        gc.set_threshold(FIRST_THRESHOLD, *others)
        config.add_cleanup(partial(_put_back, first))


def _put_back(first: int) -> None:
    """Put the threshold back, unless other code has set it meanwhile."""
    now, *others = gc.get_threshold()
    if now == FIRST_THRESHOLD:
        gc.set_threshold(first, *others)


@cache
def _freeze() -> None:
    """Freeze what exists, once a process: a later session would freeze the garbage of this one."""
    gc.freeze()
