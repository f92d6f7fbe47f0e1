"""The process that runs items: its rollouts, where their output goes, and who gets the results."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import groupby
from typing import Any

import pytest

from osmosis_ai.models.litellm import filter_renewals

from .. import compat
from ..run_result import RunId, RunResult
from . import capture
from .collection import RunItem
from .protocol import Rollouts, needs_phases, run_item
from .report_contents import FailureSections


class ItemRunner:
    """One a process that runs items, from when its first rollouts are started: a pytest plugin."""

    def __init__(
        self,
        config: pytest.Config,
        rollouts: Rollouts,
        *,
        sections: FailureSections,
        relays: Collection[object] = (),
        on_begin: Callable[[], None],
        on_report: Callable[[RunId, RunResult], None],
    ) -> None:
        """`relays`: see `run_item`.

        `on_begin` is called before the first run starts.
        `on_report` is called with what is about to be reported of a run.
        """
        self._sections = sections
        self._relays = relays
        self.on_report = on_report
        self.phases = needs_phases(config)
        """Whether pytest's own protocol reports each item."""
        self._end_routing = capture.route(config)
        self._on_begin = on_begin
        self.rollouts = rollouts
        self._blocks: deque[list[pytest.Item]] = deque()
        """Runs with no ordinary test between them, to be offered when the session comes to them."""
        self._is_complete = True
        """Whether an ordinary test comes behind the last block: what comes next is another."""
        self._is_in_block = False
        """Whether the session has come to a run, and to no ordinary test since."""
        self._has_begun = False
        self._lock = threading.Lock()

    def coming(self, items: Iterable[pytest.Item]) -> None:
        """Note the next items, in order, and offer their runs in time; from any thread.

        No run is started before the session comes to its block: an ordinary test ahead of it may
        patch what rollouts use, move the working directory, or stop the clock.
        """
        with self._lock:
            for are_ordinary, found in groupby(items, is_ordinary):
                if are_ordinary:
                    self._is_complete = True
                elif self._is_complete:
                    self._blocks.append(list(found))
                    self._is_complete = False
                elif self._blocks:
                    self._blocks[-1].extend(found)
                else:  # the session is in this block
                    self.rollouts.coming(coming_runs(found))

    def begin(self, run: RunId) -> None:
        """Start the block of a run that the session has come to, unless it has been started."""
        if self._is_in_block:
            return
        self._is_in_block = True
        self._note_begin()
        with self._lock:
            if any(run in run_ids(block) for block in self._blocks):
                while run not in run_ids(block := self._blocks.popleft()):
                    pass  # the session has passed it, and asked for no run: a fixture has failed
                self.rollouts.coming(coming_runs(block))

    def begin_all(self) -> None:
        """Start every run that is known: ordinary tests touch none."""
        self._note_begin()
        with self._lock:
            while self._blocks:
                self.rollouts.coming(coming_runs(self._blocks.popleft()))

    def _note_begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._on_begin()

    def reach(self, item: pytest.Item) -> None:
        """Note that the session comes to an item, also to one that another plugin runs."""
        self._is_in_block = self._is_in_block and not is_ordinary(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run and report the item of a run; leave every other to pytest."""
        if not isinstance(item, RunItem) or is_skipped(item):
            return None
        for renew in filter_renewals:  # a call may continue while pytest goes to the next item
            renew()
        if not self._is_in_block:
            self.begin(item.run_id)
        is_done = run_item(
            item,
            nextitem,
            self.rollouts,
            phases=self.phases,
            sections=self._sections,
            relays=self._relays,
            on_report=self.on_report,
        )
        return is_done or None

    def close(self) -> None:
        """Cancel what is in flight and release everything."""
        try:
            self.rollouts.close()
        finally:
            self._end_routing()


class ItemWatch:
    """A pytest plugin where a session has other items than runs that have one report each."""

    def __init__(self, runner: ItemRunner, config: pytest.Config) -> None:
        self._runner = runner
        self._restore = compat.keep_current_test(config)

    def pytest_unconfigure(self) -> None:
        """Leave the environment to pytest again."""
        self._restore()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Say where the session is; forget the conversation once the item has ended for good."""
        self._runner.reach(item)
        result = yield
        if isinstance(item, RunItem):
            item.finished = None
        return result


def run_ids(items: Iterable[pytest.Item]) -> Iterator[RunId]:
    """Yield the runs that items stand for."""
    return (run for item in items if (run := run_id_of(item)) is not None)


def coming_runs(items: Iterable[pytest.Item]) -> list[RunId]:
    """Return the runs that items stand for and will ask for: conditions of markers run here."""
    return [run for item in items if (run := run_id_of(item)) is not None and not is_skipped(item)]


def deselect_repeated(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave one item a run, the first: a conftest.py or `--keep-duplicates` may give several."""
    runs = list(run_ids(items))
    if len(set(runs)) == len(runs):
        return
    seen: set[RunId | None] = set()
    left: list[pytest.Item] = []
    repeated: list[pytest.Item] = []
    for item in items:
        run = run_id_of(item)
        (repeated if run in seen and run is not None else left).append(item)
        seen.add(run)
    items[:] = left
    config.hook.pytest_deselected(items=repeated)


def is_skipped(item: pytest.Item) -> bool:
    """Return whether markers have pytest skip an item; most items of data files have none."""
    return not (isinstance(item, RunItem) and not item.own_markers) and compat.is_skipped(item)


def is_run_alone(item: pytest.Item) -> bool:
    """Return whether an item runs nothing but a run, and no marker says how."""
    return isinstance(item, RunItem) and not item.own_markers


def is_ordinary(item: pytest.Item) -> bool:
    """Return whether an item is an ordinary test, and no run."""
    return not isinstance(item, RunItem) and run_id_of(item) is None


def run_id_of(item: pytest.Item) -> RunId | None:
    """Return the run that an item stands for, if it is one of ours."""
    if isinstance(item, RunItem):
        return item.run_id
    callspec = getattr(item, "callspec", None)
    run = None if callspec is None else callspec.params.get("rollout")
    return run if isinstance(run, RunId) else None
