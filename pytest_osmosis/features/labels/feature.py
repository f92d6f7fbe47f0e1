"""What people said of the runs of a session, at the seams: figures, and gates on agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...session.seams import Feature

if TYPE_CHECKING:
    from ...analysis.planned_rows import PlannedRows
    from ...analysis.score_table import ScoreTable
    from ...reports.formats import Sections
    from ...rollouts.suite import Suite
    from ...run_result import SuiteInfo
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult
    from .run_labels import Labels


class LabelsFeature(Feature):
    """Adds what people said of runs that were marked beside them."""

    _report: Path | None = None
    _confidence: float | None = None
    _kept: Mapping[str, Path] = {}
    """By suite, where another evaluation has kept its runs."""
    _places: Mapping[str, Sequence[Path]] = {}
    """By suite, where its labels may be."""
    _damaged: Mapping[str, str] = {}
    """By suite, why its labels cannot be read any more at the end of the session."""

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Note where the report goes: labels may be beside an earlier one there."""
        self._report, self._confidence = spec.output, spec.deciding.confidence
        return spec

    def describe(self, suite: Suite) -> SuiteInfo:
        """Note where its runs are kept, if another evaluation has recorded them."""
        if suite.recorded_in is not None:
            self._kept = {**self._kept, suite.spec.name: suite.recorded_in}
        return suite.info

    def known(
        self,
        suites: Sequence[SuiteInfo],
        folder_of: Callable[[SuiteInfo], Path],
        rows_of: Callable[[SuiteInfo], PlannedRows],
    ) -> Iterable[str]:
        """Note where each suite is kept; ConfigurationError for labels that cannot be read."""
        report = [] if self._report is None else [self._report]
        found = {
            info.name: [self._kept.get(info.name) or folder_of(info), *report] for info in suites
        }
        self._places = {**self._places, **found}
        for info in suites:
            self._labels(info.name)
        return ()

    def tables(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> Mapping[str, ScoreTable]:
        """Return the marks, by the name that gates on agreement look for."""
        labels = self._labels_at_the_end(suite.info.name)
        if labels is None:
            return {}
        from .people import section_of

        section = section_of(suite, labels, self._confidence)
        return {} if section is None else section.references(suite)

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with what people said of its runs."""
        return result.with_suites(self._with_people)

    def _with_people(self, suite: SuiteResult) -> SuiteResult:
        labels = self._labels_at_the_end(suite.info.name)
        if labels is None:
            return suite
        from .people import with_people

        return with_people(suite, labels, self._confidence)

    def write(self, result: EvalResult, sections: Sections) -> Iterable[str]:
        """Return which marks are in no figure, as their file was damaged while the session ran."""
        return tuple(f"no marks are used: {why}" for why in dict.fromkeys(self._damaged.values()))

    def _labels_at_the_end(self, suite: str) -> Labels | None:
        """Return the labels of a suite; the report of its runs does not depend on them."""
        try:
            return self._labels(suite)
        except ConfigurationError as error:
            self._damaged = {**self._damaged, suite: str(error)}
            return None

    def _labels(self, suite: str) -> Labels | None:
        """Return the labels of a suite; None where no run was ever marked."""
        places = self._places.get(suite, ())
        if not any(map(_may_have_labels, places)):
            return None
        from .run_labels import UnreadableLabels, read_labels

        try:
            return read_labels(places)
        except UnreadableLabels as error:
            raise ConfigurationError(str(error)) from None


def _may_have_labels(place: Path) -> bool:
    """Whether there is a file of labels; without a folder, beside a report."""
    return (place / "labels.json").exists() or place.with_name(f"{place.name}.labels").exists()
