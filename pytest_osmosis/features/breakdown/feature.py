"""Figures by columns at the seams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...session.seams import Feature
from .results import NoColumn, broken_down, check_column

if TYPE_CHECKING:
    import pytest

    from ...rollouts.suite import Suite
    from ...spec import SessionSpec
    from ...suite_results import EvalResult


class BreakdownFeature(Feature):
    """Adds to each suite its figures by the columns that were asked for."""

    def __init__(self, config: pytest.Config, names: Sequence[str]) -> None:
        self._names = names
        self._suites: Mapping[str, Suite] = {}
        self._spec: SessionSpec | None = None

    def check(self, spec: SessionSpec) -> None:
        """Note by which confidence figures have intervals, and where rows are."""
        self._spec = spec

    def check_rows(self, suites: Mapping[str, Suite]) -> None:
        """Raise ConfigurationError where a column is not there."""
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

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with its figures by the columns."""
        from ...analysis.aggregate import CONFIDENCE
        from ...session.suite_rows import with_row_data

        assert self._spec is not None
        level = self._spec.deciding.confidence or CONFIDENCE
        result = with_row_data(result, self._suites, self._spec)
        return result.with_suites(partial(broken_down, columns=self._names, confidence=level))
