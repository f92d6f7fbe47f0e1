"""The garbage collector, while rollouts are under way.

Every rollout makes objects, and what there is of a session besides, items above all, stays until
its end: to look through all of that again and again costs more than the garbage is worth.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

YOUNG = 10_000
"""So many new objects are there before anybody looks for garbage among them."""


def collect_less() -> Callable[[], None]:
    """Leave alone what there is by now, and look at the rest more rarely; the result ends that.

    A collector that is switched off, or set to look more rarely still, stays as it is.
    """
    first, *others = gc.get_threshold()
    gc.freeze()
    if 0 < first < YOUNG:
        gc.set_threshold(YOUNG, *others)

    def end() -> None:
        gc.unfreeze()
        if gc.get_threshold() == (YOUNG, *others):
            gc.set_threshold(first, *others)

    return end
