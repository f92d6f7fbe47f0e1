"""Who runs our items: each by itself, as pytest calls for it, or a stretch of them in one call.

What pytest does around every item, for tests that warn, assert and hang, costs more than to report
the run of one. Where no plugin looks at single items it is done once for all items of ours that
follow each other; what they warn of is told of each all the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice

import pytest
from _pytest.warnings import catch_warnings_for_item

from osmosis_ai.secret import Redactor

from ..results import REPORT_FIELD
from ..rollouts.guards.isolation import Blocked
from ..rollouts.pool import RolloutPool
from .collection import RunItem
from .protocol import needs_phases, package_of, record_warning, run_item, warn_of_blocking

_LOOPS = ("_pytest", "pytest_osmosis")
"""Packages whose `pytest_runtestloop` may be left out; a worker has one of its own."""


class Runner:
    """A plugin of the session's, from when its first rollouts are started."""

    def __init__(self, config: pytest.Config, rollouts: RolloutPool, redact: Redactor) -> None:
        self._rollouts = rollouts
        self._redact = redact
        self._phases = needs_phases(config)
        self._stretches = not self._phases and _bears_stretches(config)
        self._catches = config.pluginmanager.has_plugin("warnings")
        self._coming: Sequence[RunItem] = ()
        """The stretch that the next call is for."""

    def run(self, session: pytest.Session) -> bool | None:
        """Run the session's items, if they can be run in stretches; `pytest_runtestloop`."""
        failed = session.testsfailed and not session.config.option.continue_on_collection_errors
        if failed or not self._stretches:
            return None
        items, begin = session.items, 0
        while begin < len(items):
            self._coming = _stretch(items, begin)
            end = begin + max(len(self._coming), 1)
            nextitem = items[end] if end < len(items) else None
            hook = session.config.hook
            hook.pytest_runtest_protocol(item=items[begin], nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            begin = end
        return True

    def run_one(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run one of our items, or the stretch that it begins; `pytest_runtest_protocol`."""
        if not isinstance(item, RunItem):
            return None
        stretch, self._coming = self._coming, ()
        if stretch:
            self._run_stretch(stretch, nextitem)
        else:
            self._run(item, nextitem)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """What pytest says of a run that passed, where nobody has anything to add."""
        if self._phases or report.outcome != "passed" or not hasattr(report, REPORT_FIELD):
            return None
        return "passed", ".", "PASSED"

    def _run(self, item: RunItem, nextitem: pytest.Item | None) -> None:
        run_item(item, nextitem, self._rollouts, phases=self._phases, redact=self._redact)

    def _run_stretch(self, stretch: Sequence[RunItem], nextitem: pytest.Item | None) -> None:
        session, run = stretch[0].session, self._run_caught if self._catches else self._run
        for item, following in zip(stretch, (*stretch[1:], nextitem), strict=True):
            run(item, following)
            if session.shouldfail or session.shouldstop:
                break

    def _run_caught(self, item: RunItem, nextitem: pytest.Item | None) -> None:
        with warnings.catch_warnings(record=True) as caught:
            try:
                self._run(item, nextitem)
            finally:
                for message in caught:
                    record_warning(item.ihook, message, nodeid=item.nodeid)


def _stretch(items: Sequence[pytest.Item], begin: int) -> Sequence[RunItem]:
    """The items of ours from `begin` on of one file; none where a marker may ask for more."""
    stretch = []
    for item in islice(items, begin, None):
        if not isinstance(item, RunItem) or item.is_marked or item.parent != items[begin].parent:
            break
        stretch.append(item)
    return stretch


def _bears_stretches(config: pytest.Config) -> bool:
    """Whether nothing in the session has to do with single items, but what reports them."""
    loops = config.hook.pytest_runtestloop.get_hookimpls()
    others = (loop for loop in loops if not (loop.wrapper or loop.hookwrapper))
    if any(package_of(loop.plugin) not in _LOOPS for loop in others):
        return False
    if config.hook.pytest_assertion_pass.get_hookimpls():
        return False
    hangs = config.pluginmanager.has_plugin("faulthandler")
    return not (hangs and float(config.getini("faulthandler_timeout") or 0.0))


class Awaiting:
    """A plugin of a worker that leaves it to the controller to report its items.

    xdist's loop ends there once nothing more is to come; what has come is waited for.
    """

    def __init__(
        self,
        config: pytest.Config,
        wait: Callable[[], None],
        blocked: Callable[[], Iterable[Blocked]],
    ) -> None:
        self._config = config
        self._wait = wait
        self._blocked = blocked

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Until every run has ended; what code warns of meanwhile is told of no item."""
        with self._recording():
            result = yield
            self._wait()
        warn_of_blocking(self._config.hook, self._blocked(), nodeid="")
        return result

    def _recording(self) -> AbstractContextManager[None]:
        """As pytest records the warnings of an item."""
        config = self._config
        if not config.pluginmanager.has_plugin("warnings"):
            return nullcontext()
        return catch_warnings_for_item(config=config, ihook=config.hook, when="runtest", item=None)
