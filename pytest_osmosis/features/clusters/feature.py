"""Clusters of rows at the seams: the column that was given, or a hint that there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...run_result import CLUSTER
from ...session.seams import Feature

if TYPE_CHECKING:
    import pytest

    from ...rollouts.suite import Suite
    from ...run_result import SuiteInfo
    from ...suite_results import EvalResult


class ClustersFeature(Feature):
    """Has suites know which of their rows belong together."""

    def __init__(self, config: pytest.Config, column: str) -> None:
        self._config = config
        self._column = column
        self._suites: list[Suite] = []
        """Those of data files: a hint may be about them."""

    def describe(self, suite: Suite) -> SuiteInfo:
        """Return the suite with its clusters; ConfigurationError where a row has none."""
        if not self._column:
            if not suite.info.scored_by_test:
                self._suites.append(suite)
            return suite.info
        from .columns import WrongColumn, clusters_of

        dataset = suite.dataset
        try:
            found = clusters_of(self._column, dataset.row_indices, dataset.records())
        except WrongColumn as error:
            raise ConfigurationError(
                f"--osmosis-cluster {self._column!r}: {suite.spec.name}: {error}"
            ) from None
        settings = {**suite.info.settings, CLUSTER: self._column}
        return replace(suite.info, clusters=found, settings=settings)

    def lines(self, result: EvalResult) -> Iterator[str]:
        """Yield the hint, once, where rows of a suite seem to belong together."""
        if self._config.get_verbosity() < 0:
            return
        ended = {each.info.name: each for each in result.suites if not each.info.clusters}
        for suite in self._suites:
            if (found := ended.get(suite.spec.name)) is not None and found.functions:
                from ...reports.summary import COLUMNS, indented
                from .hint import hint

                if line := hint(found, suite.dataset):
                    width = getattr(self._config.get_terminal_writer(), "fullwidth", COLUMNS)
                    yield from indented(line, int(width))
                    return
