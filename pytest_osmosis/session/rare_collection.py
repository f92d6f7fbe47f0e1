"""Collect garbage rarely while an evaluation runs.

Items, reports and results live to the end of the session. The garbage collector walks them again
and again, finds nothing, and takes a quarter of the processor time of a rollout for it. So the
objects that exist when rollouts begin are frozen, and the first threshold is raised meanwhile.

What is frozen stays so: to walk it once more at the end would take a quarter of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from functools import cache

import pytest

from ..items.runner import is_ordinary
from ..options.reader import lists_only

FIRST_THRESHOLD = 10_000
"""New objects before the youngest are looked through; Python's own is 700 or 2,000."""


def collect_rarely(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Collect rarely until the session ends; beside ordinary tests, once none is left.

    A process without items, such as xdist's controller, runs no test of its own.
    """
    if lists_only(config):
        return
    rarely = _RareCollection()
    config.add_cleanup(rarely.end)
    ordinary = [at for at, item in enumerate(items) if is_ordinary(item)]
    if not ordinary:
        rarely.begin()
    elif behind := items[ordinary[-1] + 1 :]:
        config.pluginmanager.register(_BehindTests(rarely, behind), "osmosis-rare-collection")


class _RareCollection:
    """The collector's first threshold: raised and put back."""

    _before: int | None = None

    def begin(self) -> None:
        """Freeze what exists, and raise the threshold; do nothing when repeated.

        A collector that is disabled, or whose first threshold is 0, is left alone.
        """
        first, *others = gc.get_threshold()
        if not (first and gc.isenabled()):
            return
        _freeze()
        if first < FIRST_THRESHOLD:
            self._before = first
            gc.set_threshold(FIRST_THRESHOLD, *others)

    def end(self) -> None:
        """Put the threshold back, unless other code has set it meanwhile."""
        first, *others = gc.get_threshold()
        if self._before is not None and first == FIRST_THRESHOLD:
            gc.set_threshold(self._before, *others)
        self._before = None


class _BehindTests:
    """Collects rarely behind the last ordinary test."""

    def __init__(self, rarely: _RareCollection, items: Sequence[pytest.Item]) -> None:
        """`items` are those behind it."""
        self._rarely = rarely
        self._items = frozenset(items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begin; end where a worker gets a test of one that was lost."""
        if item in self._items:
            self._rarely.begin()
        else:
            self._rarely.end()
        return (yield)


@cache
def _freeze() -> None:
    """Freeze what exists, once a process: a later session would freeze the garbage of this one."""
    gc.freeze()
