"""The evaluation of a session that lists what there is, as `--collect-only` does, and runs nothing.

It reads rows and imports code. It needs no key, opens nothing that is kept and writes no report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..items.runner import run_ids
from ..run_result import SuiteInfo, selected_suites
from . import header, preflight
from .evaluation import Evaluation

if TYPE_CHECKING:
    from ..rollouts.suite import Suite
    from ..spec import SessionSpec
    from .seams import Feature


class ListingEvaluation(Evaluation):
    """An evaluation whose items are listed. A pytest plugin too."""

    def __init__(
        self, config: pytest.Config, spec: SessionSpec, features: Sequence[Feature]
    ) -> None:
        self._infos: dict[str, SuiteInfo] = {}
        super().__init__(config, spec, features, self._infos)
        self._selected: Counter[str] = Counter()
        self._notices: list[str] = []

    def plugins(self) -> dict[str, object]:
        """Return what has hooks of pytest: itself too."""
        return {**super().plugins(), "osmosis-listing": self}

    def start(self) -> None:
        """Read rows and import code."""
        self._prepare()
        with preflight.usage_errors():
            for feature in self.features:
                feature.check_rows(self.suites)

    def add(self, suite: Suite) -> None:
        """Add a suite, and what is shown of it."""
        super().add(suite)
        self._infos[suite.spec.name] = suite.info

    def no_rows(self, path: Path, reason: str) -> None:
        """Note a data file of which no row is selected, for the end of the session too."""
        super().no_rows(path, reason)
        self._notices.append(reason)

    def header(self) -> list[str]:
        """Return the lines of the session's header."""
        return header.fitted(self.config, self._header_lines())

    def collected(self, items: list[pytest.Item]) -> None:
        """Count the selected runs."""
        self._selected.update(run.suite for run in run_ids(items))

    def begin(self, items: list[pytest.Item]) -> None:
        """Start nothing."""

    def plan(self) -> list[str]:
        """Return what would run; `--collect-only -q` lists node ids and nothing ahead of them."""
        if self.config.get_verbosity() < 0:
            return []
        return [header.plan(*each) for each in selected_suites(self._infos, self._selected)]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Repeat which data files have no row."""
        for notice in self._notices:
            terminalreporter.write_line(notice)
