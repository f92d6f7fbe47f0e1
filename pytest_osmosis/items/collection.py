"""Data files as collectors, runs as items. Thin: what a run does is told in `suite`.

`EvalFile` stands for one evaluation on one data file, `RunItem` for one run of one row. An item
holds a run's identity; its row is read when its rollout starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import intern
from typing import TYPE_CHECKING, Any

import pytest

from ..results import RunId
from ..rollouts.suite import RolloutRecord, Suite
from .lean import LeanItem

if TYPE_CHECKING:
    from pathlib import Path


class RunFailed(Exception):
    """A run did not pass; `str()` is the whole section that its item prints."""


class EvalFile(pytest.File):
    """The items of one evaluation: rows times runs, row by row.

    Where two models run the same rows, those of the one stand beside those of the other.
    """

    suites: Sequence[Suite]

    @classmethod
    def of(cls, suites: Sequence[Suite], parent: pytest.Collector, path: Path) -> EvalFile:
        """The collector of some suites on one data file."""
        collector: EvalFile = cls.from_parent(parent, path=path)
        collector.suites = suites
        return collector

    def collect(self) -> Iterator[pytest.Item]:
        """One item a run."""
        for row_index in self.suites[0].dataset.row_indices:
            for suite in self.suites:
                yield from self._runs(suite, row_index)

    def _runs(self, suite: Suite, row_index: int) -> Iterator[pytest.Item]:
        row = suite.dataset.row_name(row_index)
        for run_index in suite.runs_of(row_index):
            run_id = RunId(suite.spec.name, row_index, run_index)
            yield RunItem.from_parent(self, name=row, suite=suite, run_id=run_id)


class EmptyFile(pytest.File):
    """A data file of which no row is selected."""

    def collect(self) -> Iterator[pytest.Item]:
        """Nothing."""
        return iter(())


class RunItem(LeanItem):
    """One run of one row."""

    __slots__ = ("finished", "run_id", "suite")
    parent: EvalFile

    def __init__(self, *, name: str, parent: EvalFile, suite: Suite, run_id: RunId) -> None:
        label, index = suite.spec.label, run_id.run_index
        run = intern(f"run-{index}-{label}" if label else f"run-{index}")
        super().__init__(name=name, parameters=run, parent=parent)
        self.suite = suite
        """The evaluation that the run belongs to."""
        self.run_id = run_id
        self.finished: RolloutRecord | None = None
        """What became of the run, while its reports are made."""

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The data file as pytest shows it, no line, the item's name."""
        return self.parent.nodeid, None, self.name

    def reportinfo(self) -> tuple[Path, None, str]:
        """The same, as a path."""
        return self.path, None, self.name

    def setup(self) -> None:
        """Infrastructure's errors are errors in setup; see `runtest`."""
        if self.finished is not None and self.finished.result.outcome == "error":
            raise RunFailed(self.finished.explanation)

    def runtest(self) -> None:
        """The run itself was awaited before; here it passes or fails."""
        if self.finished is not None and self.finished.result.outcome == "failed":
            raise RunFailed(self.finished.explanation)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The section of a run that did not pass, without any frame of ours."""
        if isinstance(excinfo.value, RunFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    _repr_failure_py = repr_failure  # what pytest calls for errors in setup


def leave_out_of_cache(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Runs are not what `--nf` is for: pytest need not remember that they were there.

    Where it does, every later session takes the time to read, and write again, a name of each run
    that there ever was.
    """
    plugin: Any = config.pluginmanager.getplugin("nfplugin")
    known = getattr(plugin, "cached_nodeids", None)
    if not isinstance(known, set) or plugin.active:
        return
    files = {item.parent.nodeid for item in items if isinstance(item, RunItem)}
    if files:
        plugin.cached_nodeids = {nodeid for nodeid in known if _file_of(nodeid) not in files}


def _file_of(nodeid: Any) -> str:
    return nodeid.partition("::")[0] if isinstance(nodeid, str) else str(nodeid.path)
