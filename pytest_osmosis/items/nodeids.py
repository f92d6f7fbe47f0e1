"""Node ids of runs: how they are built, and which run one names.

The items of a data file are `data.jsonl::<row>[run-<run>]`, with `[<label>]` behind the row where
several candidates run it; those of a marked test are `test_it.py::test_it[<row>-run-<run>]`.
The xdist controller has node ids and no items.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..rollouts.suite import Suite
from ..run_result import RunId, SuiteInfo
from ..storage.fingerprint import RunPlan


def file_id(path: Path, root: Path) -> str:
    """Return the node id of a data file: its path from the root directory, with `..` outside it.

    What pytest gives a file outside is empty where the file is an argument of the session: two such
    files would have the same node ids, and no run would be found by its own.
    """
    return os.path.relpath(path, root).replace(os.sep, "/")


def item_name(row: str, run_index: int, label: str) -> str:
    """Return the name of a run's item in its data file."""
    return f"{row}[{label}][run-{run_index}]" if label else f"{row}[run-{run_index}]"


def parameter_id(row: str, run_index: int) -> str:
    """Return the parameter id of a run of a marked test."""
    return f"{row}-run-{run_index}"


class RunNames:
    """The node ids of the runs of some suites."""

    def __init__(
        self,
        infos: Callable[[], Mapping[str, SuiteInfo]],
        plans: Callable[[], Mapping[str, RunPlan]],
        suites: Mapping[str, Suite],
    ) -> None:
        """`suites` are those of this process: rows that no plan names are looked up there."""
        self._infos = infos
        self._plans = plans
        self._suites = suites
        self._files: dict[tuple[str, str], str | None] = {}
        """Suite by the part of a node id that names a data file, and by its candidate's label."""
        self.given: dict[str, RunId] = {}
        """What cannot be read from a node id: other parameters are in it too."""

    def find(self, nodeid: str, root: Path) -> RunId | None:
        """Return the run that a node id names; None for an item that is not a run."""
        if not nodeid.endswith("]"):
            return None
        if nodeid in self.given:
            return self.given[nodeid]
        head, _, name = nodeid[:-1].rpartition("[")
        info = self._infos().get(head)
        if info is not None and info.marked:
            suite: str | None = head
            row, _, run = name.rpartition("-run-")
        else:
            file, _, row = head.partition("::")
            run = name.removeprefix("run-")
            suite = self._suite_of(file, "", root)
            if suite is None:
                row, _, label = row.removesuffix("]").rpartition("[")
                suite = self._suite_of(file, label, root)
        row_index = None if suite is None else self._row_index(suite, row)
        if suite is None or row_index is None or not run.isdecimal():
            return None
        return RunId(suite, row_index, int(run))

    def _suite_of(self, file: str, label: str, root: Path) -> str | None:
        if (file, label) not in self._files:
            path = str((root / file).resolve())
            suites = [info for info in self._infos().values() if info.data == path]
            self._files[file, label] = next(
                (info.name for info in suites if not info.marked and info.label == label), None
            )
        return self._files[file, label]

    def _row_index(self, suite: str, row: str) -> int | None:
        if suite in self._plans():
            return self._plans()[suite].row_of_name.get(row)
        if suite not in self._suites:
            return None
        dataset = self._suites[suite].dataset
        return next((i for i in dataset.row_indices if dataset.row_name(i) == row), None)
