"""What the items of runs printed, by run: read from pytest's own reports when it is asked for.

pytest keeps the reports anyhow; nothing is copied before a report of ours shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from ..results import RunId


class ReportSections(Mapping[RunId, str]):
    """The sections of the runs that did not pass."""

    def __init__(self) -> None:
        self._reports: dict[RunId, pytest.TestReport] = {}

    def keep(self, key: RunId, report: pytest.TestReport) -> None:
        """Remember the report of a run; the last one counts."""
        if report.longrepr:
            self._reports[key] = report
        else:
            self._reports.pop(key, None)

    def __getitem__(self, key: RunId) -> str:
        return str(self._reports[key].longrepr).rstrip()  # without the name of a worker

    def __contains__(self, key: object) -> bool:
        return key in self._reports

    def __iter__(self) -> Iterator[RunId]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)
