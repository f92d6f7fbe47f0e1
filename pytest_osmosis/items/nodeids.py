"""From the node id of an item to the run that it stands for, by names alone: the xdist controller
has node ids and no items. Knows how `collection` and `marked` name them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..results import RunId, SuiteInfo
from ..storage.fingerprint import RunPlan


class RunNames:
    """The names of the runs of some suites."""

    def __init__(
        self,
        infos: Callable[[], Mapping[str, SuiteInfo]],
        plans: Callable[[], Mapping[str, RunPlan]],
    ) -> None:
        self._infos = infos
        self._plans = plans
        self._files: dict[tuple[str, str], str | None] = {}
        """Suite by the part of a node id that names a data file, and by its model's label."""

    def find(self, nodeid: str, root: Path) -> RunId | None:
        """The run; None for an item that is none of ours."""
        if not nodeid.endswith("]"):
            return None
        plans = self._plans()
        head, _, name = nodeid[:-1].rpartition("[")
        if head in plans:
            suite, (row, _, run) = head, name.rpartition("-run-")
        else:
            file, _, row = head.partition("::")
            run, _, label = name.removeprefix("run-").partition("-")
            found = self._suite_of(file, label, root)
            if found is None or found not in plans:
                return None
            suite = found
        row_index = plans[suite].row_of_name.get(row)
        if row_index is None or not run.isdigit():
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
