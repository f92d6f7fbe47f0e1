"""What a session is compared with: an earlier report, the last evaluation that was kept, or another
model's runs in the same session.

Pure: knows neither files nor options nor pytest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...analysis.planned_rows import PlannedRows, ran
from ...run_result import RunResult, SuiteInfo, passes
from ...suite_results import EvalResult, RowResult, SuiteResult
from .earlier_runs import ToolsOf, earlier_runs, tools_called
from .results import Change, Difference
from .section import BaselineReport

if TYPE_CHECKING:
    from ...analysis.score_table import ScoreTable


@dataclass(frozen=True)
class Baseline:
    """What one suite is compared with."""

    source: str
    """Where it is from, as people see it."""
    suite: SuiteResult
    rows: PlannedRows
    tools_of: ToolsOf | None = None
    """Reads what its runs called; None where that is in the session itself, or nowhere."""

    @cached_property
    def table(self) -> ScoreTable:
        """Its scores; made when it is compared, since no request waits for that."""
        from ...analysis.score_table import score_table_of

        return score_table_of(self.suite, self.rows)


class NoCounterpart(ValueError):
    """A report has nothing to compare a suite with; `str()` says so."""


def baseline_of(
    suite: SuiteResult,
    source: str,
    rows: PlannedRows | None = None,
    *,
    tools_of: ToolsOf | None = None,
) -> Baseline:
    """A suite as a baseline; `rows` where those that never ran are known too."""
    return Baseline(source, suite, ran(suite) if rows is None else rows, tools_of)


def without_answers(baseline: Baseline) -> Baseline:
    """Return a baseline of which nothing is shown that a run answered."""
    suite = baseline.suite.with_rows(
        lambda row: replace(row, runs=tuple(replace(run, answer=None) for run in row.runs))
    )
    return replace(baseline, suite=suite)


def baselines_of(
    report: EvalResult,
    infos: Sequence[SuiteInfo],
    *,
    source: str,
    conversations: Path | None = None,
) -> dict[str, Baseline]:
    """Return, by suite, its part of a report, whose path people see as `source`.

    Raises:
        NoCounterpart: the report has none of a suite, or it is not clear which one.
    """
    found = {}
    for info, suite in zip(infos, counterparts(infos, report.suites), strict=True):
        if suite is None:
            there = ", ".join(_described(each.info) for each in report.suites)
            raise NoCounterpart(f"it has no evaluation of {_described(info)}, only {there}")
        tools = None
        if conversations is not None:
            tools = partial(tools_called, conversations, suite.info.name)
        found[info.name] = baseline_of(suite, source, tools_of=tools)
    return found


def _described(info: SuiteInfo) -> str:
    return f"{info.group} by {info.label or info.model}"


def counterparts(
    infos: Sequence[SuiteInfo], there: Sequence[SuiteResult]
) -> list[SuiteResult | None]:
    """Return what each suite is compared with in another session; None where that is not clear.

    Data are the same by the name that was given, by their path or by their file's name, where one
    alone on each side has it; the only data of both sessions need no name.
    """
    here = {info.group: _data_names(info) for info in infos}
    others = {suite.info.group: _data_names(suite.info) for suite in there}
    known = dict(zip(here, others, strict=True)) if len(here) == len(others) == 1 else {}
    for level in range(0 if known else 3):
        theirs = _alone(others, level)
        for name, group in _alone(here, level).items():
            if name in theirs:
                known[group] = theirs[name]
                del here[group], others[theirs[name]]
    return [
        _candidate(info, [each for each in there if each.info.group == known.get(info.group)])
        for info in infos
    ]


def _data_names(info: SuiteInfo) -> Sequence[str]:
    return info.group, info.data, Path(info.data).name


def _alone(groups: Mapping[str, Sequence[str]], level: int) -> dict[str, str]:
    """Return the groups by their names of a level, as far as these are of one group only."""
    counts = Counter(names[level] for names in groups.values())
    return {
        names[level]: group
        for group, names in groups.items()
        if names[level] and counts[names[level]] == 1
    }


def _candidate(info: SuiteInfo, there: Sequence[SuiteResult]) -> SuiteResult | None:
    """Return the candidate with the same agent and model, or one of them, or the only one."""
    for same in (("agent", "model"), ("model",), ("agent",), ()):
        found = [
            each
            for each in there
            if all(getattr(each.info, name) == getattr(info, name) for name in same)
        ]
        if len(found) == 1:
            return found[0]
    return None


def pair_of(
    suite: SuiteResult,
    every: Iterable[SuiteResult],
    rows_of: Callable[[SuiteInfo], PlannedRows | None] = lambda info: None,
) -> tuple[int, Baseline | None]:
    """Return what a suite is compared with in its session, and how many suites are, with the same.

    That is the baseline model's part, else the first candidate.
    """
    name, first = suite.info.name, suite.info.leader
    every = list(every)
    model = suite.companion or next(
        (each for each in every if each.info.companion_of == name), None
    )
    group = {each.info.name: each for each in every if each.info.group == first}
    other = model or group.get(first or "")
    if other is None:
        return 1, None
    source = other.info.label if model is None else other.info.model
    return max(1, len(group) - 1), baseline_of(other, source, rows_of(other.info))


def with_changes(
    suite: SuiteResult,
    rows: PlannedRows,
    baseline: Baseline,
    *,
    confidence: float | None,
    pairs: int = 1,
) -> SuiteResult:
    """Return a suite that gates have decided on, with what changed against a baseline.

    The intervals hold for so many `pairs` together; without a `confidence` they have the usual one.
    """
    from ...analysis.aggregate import CONFIDENCE
    from ...analysis.score_table import score_table_of

    names = [verdict.eval_fn for verdict in suite.verdicts if verdict.eval_fn]
    table, level = score_table_of(suite, rows, names), confidence or CONFIDENCE
    report = compared(suite, table, baseline=baseline, confidence=level, pairs=pairs)
    return replace(suite, sections={**suite.sections, "baseline": report})


def compare_suites(
    suite: SuiteResult,
    before: SuiteResult,
    source: str,
    *,
    confidence: float | None = None,
    tools_of: ToolsOf | None = None,
) -> BaselineReport:
    """Return the comparison of two suites that reports have; people see the earlier as `source`."""
    from ...analysis.aggregate import CONFIDENCE
    from ...analysis.score_table import score_table_of

    table, baseline = score_table_of(suite), baseline_of(before, source, tools_of=tools_of)
    return compared(suite, table, baseline=baseline, confidence=confidence or CONFIDENCE)


def compared(
    suite: SuiteResult, table: ScoreTable, *, baseline: Baseline, confidence: float, pairs: int = 1
) -> BaselineReport:
    """The comparison of a suite with its baseline, with what both answered where a row changed.

    Intervals and p hold for all of so many `pairs` together (Bonferroni).
    """
    from .compare import compare

    report = compare(table, baseline.table, confidence=1.0 - (1.0 - confidence) / pairs)
    here, there = ({row.row_index: row for row in each.rows} for each in (suite, baseline.suite))

    def with_answers(eval_fn: str) -> Callable[[Change], Change]:
        return lambda change: _with_answers(change, eval_fn, table, here, there)

    comparisons = tuple(
        replace(
            each,
            changes=tuple(map(with_answers(each.eval_fn), each.changes)),
            clusters=each.clusters and tuple(map(with_answers(each.eval_fn), each.clusters)),
            differences=tuple(_adjusted(found, pairs) for found in each.differences),
        )
        for each in report.comparisons
    )
    others = (
        *_other_prompts(suite.info, baseline.suite.info),
        *_other_clusters(suite.info, baseline.suite.info),
    )
    notes = (*_whole_data(suite.info, baseline, table), *others, *report.notes)
    try:
        earlier = earlier_runs(comparisons, baseline.suite, suite.info, baseline.tools_of)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        earlier = earlier_runs(comparisons, baseline.suite, suite.info, None)
        notes += (f"the tools that the baseline called are not known: {error}",)
    if pairs > 1:
        notes += (f"intervals and p hold for all {pairs} pairs together (Bonferroni)",)
    return replace(
        report, comparisons=comparisons, notes=notes, source=baseline.source, earlier=earlier
    )


def _adjusted(found: Difference, pairs: int) -> Difference:
    p = found.paired.p
    if pairs == 1 or p is None:
        return found
    return replace(found, paired=replace(found.paired, p=min(1.0, pairs * p)))


def _other_prompts(info: SuiteInfo, before: SuiteInfo) -> Iterator[str]:
    """Say that the same rows were asked otherwise."""
    for name, what in (("prompt_template", "the prompt template"), ("map", "the map of columns")):
        if info.settings.get(name) != before.settings.get(name):
            yield f"{what} is another than in the baseline"


def _other_clusters(info: SuiteInfo, before: SuiteInfo) -> Iterator[str]:
    """Say that rows belong together otherwise than in the baseline, or on one side alone."""
    here, there = info.cluster_column, before.cluster_column
    if not here and there:
        yield (
            f"rows are taken as independent; in the baseline they belong together by {there!r}: "
            f"--osmosis-cluster {there}"
        )
    elif here and here != there:
        others = f"by {there!r}" if there else "taken as independent"
        yield f"rows belong together by {here!r}; in the baseline they are {others}"


def _whole_data(info: SuiteInfo, baseline: Baseline, table: ScoreTable) -> Sequence[str]:
    """Say that the data differ, where the baseline does not say in which rows."""
    there = baseline.suite.info.digest
    if all(baseline.rows.digests) or not there or there == info.digest:
        return ()
    by = "id" if all(key.startswith("id ") for key in table.rows.keys) else "index"
    return (
        "the data differ, and the baseline does not say in which rows: "
        f"they are compared by {by} only",
    )


def _with_answers(
    change: Change,
    eval_fn: str,
    table: ScoreTable,
    here: Mapping[int, RowResult],
    there: Mapping[int, RowResult],
) -> Change:
    if change.verdict == "changed" and not change.is_flip:
        return change

    def answer(row: RowResult | None, passing: bool) -> str | None:
        runs = row.runs if row is not None else ()
        return _answer(runs, eval_fn, threshold=table.threshold(eval_fn), passing=passing)

    return replace(
        change,
        answer=answer(here.get(change.row_index), change.difference > 0.0),
        baseline_answer=answer(there.get(change.baseline_row_index), change.difference < 0.0),
    )


def _answer(
    runs: Sequence[RunResult], eval_fn: str, *, threshold: float, passing: bool
) -> str | None:
    """What the first run answered that passed, or did not; else the error that it ended in."""
    for run in runs:
        if passes(run.scores.get(eval_fn), threshold) == passing:
            return run.answer if run.error is None else run.error
    return None
