"""Judges beside what people said of the same runs: corrected means and agreement, as every report
shows them; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from ...analysis.aggregate import CONFIDENCE
from ...analysis.marks import Mark, agreement, corrected, marked_rows, marks_in
from ...analysis.score_table import ScoreTable, score_table_of
from ...analysis.statistics.kappa import Agreement
from ...analysis.statistics.prediction_powered import (
    FEWEST_MARKED,
    CorrectedMean,
)
from ...escaping import counted, escape_control_chars
from ...reports.highlights import figure_text
from ...reports.tables import span
from ...suite_results import Section, SuiteResult
from .run_labels import Labels

MARKS = "marks"
"""What gates find the marks under."""
MARK_MORE = "mark runs in osmosis eval view, of rows drawn at random, then give the same command"


@dataclass(frozen=True, slots=True)
class Judged:
    """One eval function beside people."""

    eval_fn: str
    marks: tuple[Mark, ...]
    """Those that count: of runs that the function has scored, by the same rubric."""
    rows: int
    """In so many rows."""
    other_rubric: int
    """Marks that are left out: the rubric was another one then, or is not known."""
    mean: CorrectedMean | None
    agreement: Agreement | None

    def sentence(self) -> str:
        """Return its mean by people, and how far it agrees with them."""
        parts = []
        if self.mean is not None:
            of = f"{counted(len(self.marks), 'mark')} in {counted(self.rows, 'row')}"
            limits = f" ({span(self.mean.interval)})" if self.mean.interval else ""
            few = "" if limits else f"; too few for an interval, which takes {FEWEST_MARKED} rows"
            parts.append(
                f"mean corrected by people {figure_text(self.mean.value)}{limits}, {of}{few}"
            )
        if self.agreement is not None and self.agreement.kappa is not None:
            limits = f" ({span(self.agreement.interval)})" if self.agreement.interval else ""
            parts.append(f"agreement {figure_text(self.agreement.kappa)}{limits}")
        if self.other_rubric:
            were = "was" if self.other_rubric == 1 else "were"
            parts.append(
                f"{counted(self.other_rubric, 'mark')} {were} made by another text of its rubric "
                "and not used: mark those runs again"
            )
        return f"{escape_control_chars(self.eval_fn)}: {'; '.join(parts)}"


@dataclass(frozen=True)
class People(Section):
    """What people said of the runs of a suite, by eval function."""

    functions: tuple[Judged, ...]
    template = "labels/page.html"

    def document(self) -> dict[str, Any]:
        """Return its value in the JSON report."""
        return {
            each.eval_fn: {
                "marks": [
                    {"row_index": row, "run_index": run, "is_right": is_right}
                    for row, run, is_right in each.marks
                ],
                "rows": each.rows,
                "other_rubric": each.other_rubric,
                "corrected": None if each.mean is None else asdict(each.mean),
                "agreement": None if each.agreement is None else asdict(each.agreement),
            }
            for each in self.functions
        }

    def joined(self, others: Sequence[Section], whole: SuiteResult) -> Section | None:
        """Return the section of a whole suite, from the marks of its parts."""
        found: dict[str, tuple[tuple[Mark, ...], int]] = {}
        for part in (self, *cast("Sequence[People]", others)):
            for each in part.functions:
                marks, other = found.get(each.eval_fn, ((), 0))
                found[each.eval_fn] = (*marks, *each.marks), other + each.other_rubric
        return _people(whole, found, whole.confidence)

    def lines(
        self, suite: SuiteResult, *, is_titled: bool, width: int, verbose: bool
    ) -> Iterable[str]:
        """Return its lines in the summary."""
        from ...reports.summary import indented

        for line in self.sentences():
            yield from indented(line, width)

    def markdown(self) -> Iterable[str]:
        """Return its lines in the Markdown report."""
        from ..markdown.report import escaped

        return (f"- {escaped(line)}" for line in self.sentences())

    def sentences(self) -> Iterator[str]:
        """Yield a sentence about each eval function."""
        return (each.sentence() for each in self.functions)

    def references(self, suite: SuiteResult) -> Mapping[str, ScoreTable]:
        """Return the marks as a table of their own: 1.0, 0.0, and NaN for what is not marked."""
        table = score_table_of(suite)
        marked = {each.eval_fn: marks_in(table, each.marks) for each in self.functions}
        return {MARKS: replace(table, scores=marked)}


def with_people(suite: SuiteResult, labels: Labels, confidence: float | None) -> SuiteResult:
    """Return the suite with what people said of its runs, if they did."""
    section = section_of(suite, labels, confidence)
    if section is None:
        return suite
    return replace(suite, sections={**suite.sections, "people": section})


def section_of(suite: SuiteResult, labels: Labels, confidence: float | None) -> People | None:
    """Return what people said of the runs that figures are of; None where they said nothing."""
    runs = [
        (run, label)
        for run in suite.deciding_runs
        if (label := labels.runs.get(run.run_id)) is not None
        and label.is_right is not None
        and label.is_of(run)
    ]
    found: dict[str, tuple[tuple[Mark, ...], int]] = {}
    for function in suite.functions:
        name = function.name
        scored = [each for each in runs if each[0].counted_score(name) is not None]
        same = [(run, label) for run, label in scored if label.is_about(run, name)]
        marks = ((run.row_index, run.run_index, bool(label.is_right)) for run, label in same)
        if scored:
            found[name] = tuple(marks), len(scored) - len(same)
    return _people(suite, found, confidence)


def _people(
    suite: SuiteResult,
    found: Mapping[str, tuple[tuple[Mark, ...], int]],
    confidence: float | None,
) -> People | None:
    if not found:
        return None
    table = score_table_of(suite)
    return People(
        tuple(
            _judged(table, name, marks, other, confidence or CONFIDENCE)
            for name, (marks, other) in found.items()
        )
    )


def _judged(
    table: ScoreTable, name: str, marks: tuple[Mark, ...], other: int, confidence: float
) -> Judged:
    marked = marks_in(table, marks)
    return Judged(
        name,
        marks,
        marked_rows(marked),
        other,
        corrected(table, name, marked, confidence),
        agreement(table, name, marked, confidence),
    )
