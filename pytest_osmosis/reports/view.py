"""A result as people read it, in order: verdicts, figures, what changed, what to look at.

Text and numbers formatted, nothing escaped: what Markdown and HTML both show is decided here, once.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..escaping import counted
from ..rollouts.failure_text import below_threshold
from ..run_result import EMBEDDED_ENDPOINT, OWN_MODEL, RunResult
from ..suite_results import EvalResult, RowResult, Section, SuiteResult
from ..verdicts import EvalVerdict, GateOutcome, overall
from .facts import facts, not_needed
from .formats import Sections, no_sections, overviews
from .highlights import (
    LOWEST_IN_FILES,
    RUNS_IN_FILES,
    lowest_rows,
    row_name,
    run_name,
    unscored_rows,
    unscored_share,
)
from .tables import (
    ColumnTable,
    Overview,
    Table,
    by_columns,
    figures,
)

SECTION_LIMIT = 6_000
"""Characters of one run's section."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that did not pass every time, or has no score, and its runs that did not pass."""

    name: str
    found: str
    """ "2 of 5 runs passed"; "5 of 5 runs have no score" """
    runs: Sequence[tuple[str, str]]
    """Title and section of each run that did not pass."""


@dataclass(frozen=True, slots=True)
class SuiteView:
    """One evaluation."""

    name: str
    subject: str
    facts: Sequence[str]
    """Tokens, cost, errors and what is missing; a sentence each."""
    table: Table
    by: Sequence[ColumnTable]
    """The figures by the values of columns."""
    verdicts: Sequence[tuple[GateOutcome, str, str]]
    """Outcome, gate, sentence."""
    sections: Mapping[str, Section]
    """What features add."""
    lowest: Sequence[Bad]
    more_low: int
    """Rows that did not pass every time and are not in `lowest`."""
    unscored: Sequence[Bad]
    """Rows that are not low, and of which a run has no score."""
    more_unscored: int


@dataclass(frozen=True, slots=True)
class View:
    """A session."""

    state: EvalVerdict
    headline: str
    remarks: Sequence[str]
    """Why not everything was run, if so."""
    overviews: Sequence[Overview]
    suites: Sequence[SuiteView]
    environment: Sequence[tuple[str, str]]


def view_of(result: EvalResult, sections: Sections = no_sections) -> View:
    """Everything that there is to read."""
    return View(
        state=result.state,
        headline=_headline(result),
        remarks=[*_remarks(result)],
        overviews=[*overviews(result)],
        suites=[_suite(suite, sections) for suite in result.suites],
        environment=[*_environment(result)],
    )


def _headline(result: EvalResult) -> str:
    outcomes: list[str] = [each.outcome for suite in result.suites for each in suite.verdicts]
    ungated = [suite for suite in result.suites if not suite.verdicts]
    if outcomes:  # what these decide not, but observe, has passed
        ungated = [suite for suite in ungated if suite.state != "passed"]
    parts = []
    if outcomes:
        state = overall(outcomes, all_passed=True)
        gates = "gate" if len(outcomes) == 1 else "gates"
        word = {"inconclusive": "undecided"}.get(state, state)
        parts.append(f"{outcomes.count(state)} of {len(outcomes)} {gates} {word}")
    if ungated or not outcomes:
        runs = [run for suite in ungated for run in suite.runs]
        other = "other run" if outcomes else "run"
        deciding = [run for suite in ungated for run in suite.deciding_runs]
        passed = sum(run.passed for run in deciding)
        parts.append(f"{passed} of {counted(len(deciding), other)} passed")
        if (left := sum(suite.selected for suite in ungated) - len(runs)) > 0:
            parts.append(f"{left} not run")
    if outcomes and not result.is_decided and (result.halted or result.interrupted):
        parts.append("cut short")
    return ", ".join(parts)


def _remarks(result: EvalResult) -> Iterator[str]:
    if result.halted:
        yield f"stopped: {result.halted}"
    if result.interrupted:
        yield f"interrupted by {result.interrupted}"
    if result.is_decided:
        yield not_needed(result)


def _suite(suite: SuiteResult, sections: Sections) -> SuiteView:
    lowest, unscored = lowest_rows(suite), unscored_rows(suite)
    return SuiteView(
        name=suite.info.name,
        subject=_subject(suite),
        facts=facts(suite),
        table=figures(suite),
        by=by_columns(suite),
        verdicts=[
            (verdict.outcome, verdict.gate, verdict.sentence()) for verdict in suite.verdicts
        ],
        sections=suite.sections,
        lowest=[_bad(low.row, str(low), suite, sections) for low in lowest[:LOWEST_IN_FILES]],
        more_low=max(0, len(lowest) - LOWEST_IN_FILES),
        unscored=[
            _bad(row, unscored_share(row, suite), suite, sections)
            for row in unscored[:LOWEST_IN_FILES]
        ],
        more_unscored=max(0, len(unscored) - LOWEST_IN_FILES),
    )


def _bad(row: RowResult, found: str, suite: SuiteResult, sections: Sections) -> Bad:
    runs = [
        (run_name(row, run, n=suite.info.n), section_of(run, suite, sections))
        for run in _not_passed(row.runs)
    ]
    return Bad(row_name(row), found, runs)


def _not_passed(runs: Sequence[RunResult]) -> list[RunResult]:
    return [run for run in runs if not run.passed][:RUNS_IN_FILES]


def _subject(suite: SuiteResult) -> str:
    info = suite.info
    where = f" at {info.endpoint}" if info.endpoint not in ("", EMBEDDED_ENDPOINT) else ""
    on = f"{info.agent} on {info.name}" if info.agent else info.name
    by = f"{info.model}{where}: " if info.model != OWN_MODEL else ""
    return f"{by}{on}, {counted(info.rows, 'row')} x {counted(info.n, 'run')}"


def section_of(run: RunResult, suite: SuiteResult, sections: Sections) -> str:
    """What a run's item printed; without that, what the result holds."""
    text = sections(run.run_id)
    if text is None:
        text = "\n\n".join(_own_words(run, suite))
    if len(text) > SECTION_LIMIT:
        half = SECTION_LIMIT // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
    return text


def _own_words(run: RunResult, suite: SuiteResult) -> list[str]:
    low = below_threshold(run, suite.info.pass_threshold)
    reasons = [f"{name}: {said}" for name, said in run.reasons.items()]
    return [text for text in (run.error, *low, *reasons, run.answer) if text]


def _environment(result: EvalResult) -> list[tuple[str, str]]:
    found = result.environment
    if not found:
        return []
    lines = [("command", str(found["command_line"]))]
    if git := found.get("git"):
        on = f" on {git['branch']}" if git.get("branch") else ""
        lines.append(("commit", git["commit"] + on + (" and changes" if git["dirty"] else "")))
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return [*lines, ("versions", versions), ("platform", str(found["platform"]))]
