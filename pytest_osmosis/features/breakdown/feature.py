"""Figures by columns at the seams, and the values that gates are on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...analysis.gates.names import EACH
from ...errors import ConfigurationError
from ...session.seams import Feature
from .results import NoColumn, broken_down, check_column

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from ...analysis.planned_rows import PlannedRows
    from ...analysis.score_table import ScoreTable
    from ...dataset.dataset import Dataset
    from ...rollouts.suite import Suite
    from ...run_result import SuiteInfo
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult


class BreakdownFeature(Feature):
    """Adds to each suite its figures by the columns that were asked for, and that gates are on."""

    def __init__(self, config: pytest.Config, names: Sequence[str]) -> None:
        self._names = names
        self._gated: Sequence[str] = ()
        """The columns that gates are on."""
        self._suites: Mapping[str, Suite] = {}
        self._spec: SessionSpec | None = None
        self._rows_of: Callable[[SuiteInfo], PlannedRows]
        self._known: dict[str, dict[str, dict[str, list[int]]]] = {}
        """By suite and column, the rows of each value."""

    def check(self, spec: SessionSpec) -> None:
        """Note by which confidence figures have intervals, where rows are, and gates' columns."""
        from ...analysis.gates.parser import parse_gate

        self._spec = spec
        prefixes = (parse_gate(text).prefix.split(" ", 1) for text in spec.deciding.gates)
        self._gated = tuple(dict.fromkeys(each[1] for each in prefixes if each[0] == EACH))

    def check_rows(self, suites: Mapping[str, Suite]) -> None:
        """Raise ConfigurationError where a column is not there, or a row lacks the value of one."""
        self._suites = suites
        for suite in suites.values():
            if suite.info.settings.get("shard"):
                continue  # the column may be in the rows of others
            dataset = suite.dataset
            for name in self._names:
                found = map(dataset.row, dataset.row_indices)
                rows = ({**row.extra, **row.own_names} for row in found)
                try:
                    check_column(name, rows)
                except NoColumn as error:
                    raise ConfigurationError(
                        f"--osmosis-by {name!r}: {suite.spec.name}: {error}"
                    ) from None
        of_tests = all(suite.info.scored_by_test for suite in suites.values())
        for suite in suites.values():
            if suite.info.scored_by_test == of_tests:  # those that gates decide on
                self._known[suite.info.name] = self._values(suite.info, suite.dataset)

    def _values(self, info: SuiteInfo, dataset: Dataset) -> dict[str, dict[str, list[int]]]:
        """Return the rows of each value of the columns that gates are on."""
        from ..clusters.columns import WrongColumn, clusters_of

        found = {}
        for column in self._gated:
            try:
                found[column] = clusters_of(column, dataset.row_indices, dataset.records())
            except WrongColumn as error:
                raise ConfigurationError(
                    f"--osmosis-gate '{EACH} {column}: …': {info.name}: {error}"
                ) from None
        return found

    def known(
        self,
        suites: Sequence[SuiteInfo],
        folder_of: Callable[[SuiteInfo], Path],
        rows_of: Callable[[SuiteInfo], PlannedRows],
    ) -> Iterable[str]:
        """Note where rows are, also those of which none has run."""
        self._rows_of = rows_of
        return ()

    def tables(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> Mapping[str, ScoreTable]:
        """Return the values of each column that a gate is on."""
        if not self._gated:
            return {}
        from .gates import table_of

        rows, known = self._rows_of(suite.info), self._of(suite.info)
        return {
            f"{EACH} {column}": table_of(suite.info, rows, found) for column, found in known.items()
        }

    def _of(self, info: SuiteInfo) -> dict[str, dict[str, list[int]]]:
        """Return the values in a suite; rows of a test may be known to the workers alone."""
        if info.name not in self._known:
            from ...session.suite_rows import rows_of

            assert self._spec is not None
            self._known[info.name] = self._values(info, rows_of(info, self._suites, self._spec))
        return self._known[info.name]

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with its figures by the columns, if there are any."""
        if not (self._names or self._gated):
            return result  # a gate on each row alone
        from ...analysis.aggregate import CONFIDENCE
        from ...session.suite_rows import with_row_data

        assert self._spec is not None
        level = self._spec.deciding.confidence or CONFIDENCE
        if self._names:
            result = with_row_data(result, self._suites, self._spec)
        return result.with_suites(
            lambda suite: broken_down(
                suite, self._names, confidence=level, known=self._known.get(suite.info.name, {})
            )
        )
