"""Data files as collectors, runs as items.

`EvalFile` stands for the evaluations on one data file, `RunItem` for one run of one row. An item
holds a run's identity; its row is read when its rollout starts (`rollouts/suite.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..rollouts.suite import Suite
from ..run_result import RolloutRecord, RunId, RunResult
from . import nodeids
from .decorator import MARKER

if TYPE_CHECKING:
    from pathlib import Path


class EvalFile(pytest.File):
    """The items of one data file: rows times runs, row by row.

    Where several suites run the same rows, the runs of a row stand side by side.
    """

    suites: Sequence[Suite]
    _hooks_without: Any = None

    @cached_property
    def hooks(self) -> Any:
        """The file's `ihook`, looked up once for all its items.

        For when items run: every conftest.py of the session has been loaded by then.
        """
        return self.ihook

    def hooks_without(self, plugins: Iterable[object]) -> Any:
        """Return `hooks` without what these plugins implement; they are the same each time."""
        if self._hooks_without is None:
            manager = self.config.pluginmanager
            self._hooks_without = compat.hooks_without(self.hooks, manager, plugins)
        return self._hooks_without

    @classmethod
    def of(cls, suites: Sequence[Suite], parent: pytest.Collector, path: Path) -> EvalFile:
        """Return the collector of some suites on one data file."""
        nodeid = nodeids.file_id(path, parent.config.rootpath)
        collector: EvalFile = cls.from_parent(parent, path=path, nodeid=nodeid)
        collector.suites = suites
        collector.add_marker(MARKER)  # all items have what their collector has
        return collector

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item a run."""
        for row_index in self.suites[0].dataset.row_indices:
            for suite in self.suites:
                yield from self._runs(suite, row_index)

    def _runs(self, suite: Suite, row_index: int) -> Iterator[pytest.Item]:
        row, line = suite.dataset.row_name(row_index), suite.dataset.line(row_index)
        for run_index in suite.runs_of(row_index):
            run_id = RunId(suite.spec.name, row_index, run_index)
            name = nodeids.item_name(row, run_index, suite.spec.label)
            yield RunItem.from_parent(self, name=name, suite=suite, run_id=run_id, line=line)


class EmptyFile(pytest.File):
    """A data file of which no row is selected."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield nothing."""
        return iter(())


def _no_function() -> None:
    pass


class RunItem(pytest.Item):
    """One run of one row: no test function, with what conftest.py files read of every item.

    The lists and mappings are made for those who ask: few do, and there may be 100,000 items.
    """

    parent: EvalFile
    # None, as of a doctest, breaks pytest where `skipif` has a condition in text.
    obj = function = staticmethod(_no_function)
    module = sys.modules[__name__]
    cls = instance = None

    def __init__(
        self, *, name: str, parent: EvalFile, suite: Suite, run_id: RunId, line: int | None
    ) -> None:
        # Named whole: pytest 9.2 tells an id with parameters from a name with brackets.
        super().__init__(name, parent, nodeid=f"{parent.nodeid}::{name}")
        self.suite = suite
        """The evaluation that the run belongs to."""
        self.run_id = run_id
        self._line = None if line is None else line - 1
        """The line of the data file where its row begins, from 0."""
        self.finished: RolloutRecord | None = None
        """The finished rollout, while its reports are made."""

    @cached_property
    def fixturenames(self) -> list[str]:
        """No fixture: what is added here has no effect."""
        return []

    @cached_property
    def funcargs(self) -> dict[str, object]:
        """No value of a fixture."""
        return {}

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The data file as pytest shows it, the line of the row from 0, the item's name."""
        return self.parent.nodeid, self._line, self.name

    def reportinfo(self) -> tuple[Path, int, str]:
        """The same, as a path; a line is needed where markers skip the item."""
        return self.path, self._line or 0, self.name

    def setup(self) -> None:
        """Fail for an error of the infrastructure: pytest reports one in setup as an error."""
        if self.finished is not None and self.finished.result.outcome == "error":
            self._fail(self.finished.result)

    def runtest(self) -> None:
        """Fail for a run that did not pass; its rollout has ended before."""
        if self.finished is not None and self.finished.result.outcome != "passed":
            self._fail(self.finished.result)

    def _fail(self, result: RunResult) -> None:
        from ..rollouts.failure_text import headline

        pytest.fail(headline(result, self.suite.spec.pass_threshold), pytrace=False)
