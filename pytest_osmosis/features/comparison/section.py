"""What is said of a comparison: in the terminal, and in the JSON and the Markdown report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...escaping import counted, escape_control_chars, shortened
from ...reports.facts import usage_of
from ...reports.summary import COLUMNS, fitted, indented
from ...suite_results import OtherSide, Section, SuiteResult
from ...verdicts import ROW_VERDICTS

if TYPE_CHECKING:
    from ...reports.json_writer import Fields
    from ...verdicts import GateResult, Interval
    from .earlier_runs import EarlierRun, EarlierRuns
    from .results import Change, Comparison, Difference

CHANGED_SHOWN = 10
"""Rows that differ from the baseline which the terminal names."""


def report_of(suite: SuiteResult) -> BaselineReport | None:
    """Return what changed against a suite's baseline, if there is one."""
    section = suite.sections.get("baseline")
    return section if isinstance(section, BaselineReport) else None


@dataclass(frozen=True)
class BaselineReport(Section):
    """Everything that is said about a baseline."""

    template = "comparison/page.html"

    comparisons: tuple[Comparison, ...]
    """One for each eval function that both have."""
    notes: tuple[str, ...]
    """What differs between the sessions' settings and data, in sentences."""
    source: str = ""
    """Where the baseline is from, as people see it."""
    earlier: EarlierRuns = field(default_factory=dict)
    """The baseline's runs of the rows that differ."""

    @property
    def title(self) -> str:
        """Where it is from, in a heading."""
        return self.source or "baseline"

    def document(self) -> dict[str, Any]:
        """Return its object in the JSON report."""
        return {
            "source": self.source,
            "notes": list(self.notes),
            "eval_fns": {each.eval_fn: _document(each) for each in self.comparisons},
            "runs": [
                {"row_index": index, "runs": [_earlier(run) for run in runs]}
                for index, runs in self.earlier.items()
            ],
        }

    @property
    def holds_answers(self) -> bool:
        """Whether it has what a run of the baseline answered."""
        return any(run.result.answer for runs in self.earlier.values() for run in runs)

    def lines(
        self, suite: SuiteResult, *, is_titled: bool, width: int, verbose: bool
    ) -> Iterator[str]:
        """Yield its lines in the summary; a candidate's are in the tables ahead of all suites."""
        if is_titled and suite.info.leader:
            return
        yield from indented(f"against the baseline {self.source}", width)
        for note in self.notes:
            yield from indented(note, width, "  ")
        for comparison in self.comparisons:
            yield from changes(comparison, width=width, verbose=verbose)
        yield ""

    def usage(self, suite: SuiteResult) -> Iterator[str]:
        """Yield what the baseline model has used."""
        if suite.companion is not None:
            yield f"the baseline {self.source}: {usage_of(suite.companion)}"

    def markdown(self) -> Iterator[str]:
        """Yield its lines in the Markdown report."""
        from ..markdown.report import code, escaped

        yield from ["", f"#### Against the baseline {code(self.title)}"]
        if self.notes:
            yield ""
            yield from (f"- {escaped(note)}" for note in self.notes)
        for each in self.comparisons:
            yield from _in_markdown(each)

    def in_short(self) -> Iterator[str]:
        """Yield what it comes to, for each eval function."""
        return (each.in_short for each in self.comparisons)

    def other_side(self, suite: SuiteResult) -> OtherSide:
        """Return what the baseline says of the rows that differ: its means, and its runs."""
        changes = [(each, change) for each in self.comparisons for change in each.changes]
        means: defaultdict[int, dict[str, float]] = defaultdict(dict)
        for each, change in changes:
            means[change.row_index][each.eval_fn] = change.baseline_mean
        return OtherSide(
            "baseline",
            self.source,
            all(each.rows == len(suite.deciding_rows) for each in self.comparisons),
            {
                word: {change.row_index for _, change in changes if change.verdict == word}
                for word in ROW_VERDICTS
            },
            means,
            {index: [run.result for run in runs] for index, runs in self.earlier.items()},
            {
                (index, run.result.run_index): run.tools
                for index, runs in self.earlier.items()
                for run in runs
            },
        )

    def interval(self, gate: GateResult) -> Interval | None:
        """Return the interval of the difference that a gate is about."""
        return next(
            (
                difference.paired.interval
                for each in self.comparisons
                for difference in each.differences
                if (each.eval_fn, f"{difference.metric} - baseline") == (gate.eval_fn, gate.metric)
            ),
            None,
        )


# ---- the JSON report


def _document(comparison: Comparison) -> Fields:
    return {
        "rows": comparison.rows,
        "differences": [_difference(each) for each in comparison.differences],
        "changes": [_changed(each) for each in comparison.changes],
        "clusters": None
        if comparison.clusters is None
        else [_changed(each) for each in comparison.clusters],
        "tested": comparison.tested,
        "short": comparison.short,
        "rule": comparison.rule,
    }


def _earlier(run: EarlierRun) -> Fields:
    from .earlier_runs import SAVED

    return {**{name: getattr(run.result, name) for name in SAVED}, "tools": list(run.tools)}


def _difference(found: Difference) -> Fields:
    from ...reports.json_writer import figure_of

    return {
        "metric": found.metric,
        "current": found.current,
        "baseline": found.baseline,
        "difference": figure_of(found.paired.difference, found.paired.interval),
        "p": found.paired.p,
        "p_method": found.paired.p_method,
    }


def _changed(change: Change) -> Fields:
    return {
        "name": change.name,
        "row_index": change.row_index,
        "baseline_row_index": change.baseline_row_index,
        "verdict": change.verdict,
        "p": change.p,
        "mean": change.mean,
        "baseline_mean": change.baseline_mean,
        "passes": change.current.passes,
        "runs": change.current.runs,
        "scored": change.current.known,
        "baseline_passes": change.baseline.passes,
        "baseline_runs": change.baseline.runs,
        "baseline_scored": change.baseline.known,
        "answer": change.answer,
        "baseline_answer": change.baseline_answer,
    }


# ---- the terminal


def changes(each: Comparison, *, width: int = COLUMNS, verbose: bool = False) -> Iterator[str]:
    """Yield the lines about one eval function: the verdict, what regressed, then the figures.

    `verbose`: every row that differs, those that chance explains too.
    """
    title = f"{each.eval_fn}, {counted(each.rows, 'row')} compared: {each.verdict}"
    yield from indented(title, width)
    if each.is_unchanged:
        return
    if each.moved:
        yield from indented(f"{each.unit}s: {each.counts}", width, "  ")
        rows = each.shown[:CHANGED_SHOWN]
        if verbose:
            rows = [*each.shown, *each.of("changed")]
        yield from _moved(rows, width)
        if len(rows) < len(each.shown):
            yield f"    and {len(each.shown) - len(rows)} more: -v lists them"
        yield ""
    yield from (f"  {line}" for line in fitted(each.table, width - 2))
    if each.moved:
        yield from indented(each.rule, width, "  ")


def _moved(rows: Sequence[Change], width: int) -> Iterator[str]:
    for row in rows:
        name = shortened(" ".join(row.name.split()))
        yield f"    {row.verdict:<9}  {name}  {row.figures}"
        for label, answer in (("baseline", row.baseline_answer), ("current", row.answer)):
            if answer:
                yield f"      {label:<8}  {_short(answer, width)}"


def _short(text: str, width: int) -> str:
    room = width - len("      baseline  ")
    flat = " ".join(escape_control_chars(text).split())
    return flat if len(flat) <= room else flat[: room - len(" ...")].rstrip() + " …"


# ---- Markdown


def _in_markdown(each: Comparison) -> Iterator[str]:
    from ..markdown.report import NAMES_SHOWN, code, escaped, table

    yield from ["", f"{code(each.eval_fn)} over {counted(each.rows, 'row')}: {each.verdict}"]
    if each.moved:
        yield from ["", f"{each.unit.title()}s: {escaped(each.counts)}"]
    if rows := each.shown:
        yield ""
        yield from (_item(row) for row in rows[:NAMES_SHOWN])
        if len(rows) > NAMES_SHOWN:
            yield f"- and {len(rows) - NAMES_SHOWN} more"
    if not each.is_unchanged:
        yield ""
        yield from table(each.table)
    if each.moved:
        yield from ["", escaped(each.rule)]


def _item(row: Change) -> str:
    from ..markdown.report import ANSWER_SHOWN, code, escaped

    said = [
        f"{label} {code(answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + ' …')}"
        for label, answer in (("baseline", row.baseline_answer), ("current", row.answer))
        if answer
    ]
    found = f"- {row.verdict}: {code(row.name)} {escaped(row.figures)}"
    return found + (f": {', '.join(said)}" if said else "")
