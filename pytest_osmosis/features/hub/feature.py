"""What reports and the header show of datasets that were fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...session.seams import Feature

if TYPE_CHECKING:
    import pytest

    from ...rollouts.suite import Suite
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult


class HubFeature(Feature):
    """Names fetched datasets as they were given, and the revision that was read."""

    def __init__(self, config: pytest.Config, found: Mapping[str, Mapping[str, str]]) -> None:
        self._found = {each["path"]: each for each in found.values()}

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Return the session with its suites named as the datasets were given."""
        evals = (
            replace(each, name=self._found[each.name]["text"]) if each.name in self._found else each
            for each in spec.evals
        )
        return replace(spec, evals=tuple(evals))

    def header(self, suites: Iterable[Suite]) -> Iterable[str]:
        """Return a line for each dataset."""
        return [f"osmosis: {each['line']}" for each in self._found.values()]

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with where the rows are from, the revision named."""
        return result.with_suites(self._with_source)

    def _with_source(self, suite: SuiteResult) -> SuiteResult:
        if (found := self._found.get(suite.info.data)) is None:
            return suite
        settings = {**suite.info.settings, "source": found["source"]}
        return replace(suite, info=replace(suite.info, settings=settings))
