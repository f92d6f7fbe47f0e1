"""A result as people read it, in order: verdicts, figures, what changed, what to look at.

Text and numbers formatted, nothing escaped: what Markdown and HTML both show is decided here, once.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from osmosis_ai.models.answers import KNOWN_REASONS

from ..analysis.metrics import is_repeated
from ..escaping import counted, dollars, p_value, shortened
from ..rollouts.failure_text import below_threshold
from ..run_result import EMBEDDED_ENDPOINT, NOT_STREAMED, RunResult, SuiteInfo
from ..suite_results import EvalResult, RowResult, SuiteResult, Usage
from ..verdicts import Comparison, EvalVerdict, GateOutcome, overall
from .formats import Sections, no_sections
from .highlights import (
    LOWEST_IN_FILES,
    RUNS_IN_FILES,
    figure_text,
    is_left_out,
    lowest_rows,
    outcome_counts,
    row_name,
    run_name,
    some_error_kinds,
    unscored_rows,
    unscored_share,
)
from .tables import (
    Candidates,
    ColumnTable,
    Table,
    by_columns,
    candidates,
    figures,
    interval_title,
    span,
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


class Against(Comparison):
    """What changed against a baseline, for one eval function, as people read it."""

    @property
    def is_unchanged(self) -> bool:
        """Whether no metric differs, and no row."""
        return not self.changes and all(not each.paired.difference for each in self.differences)

    @property
    def in_short(self) -> str:
        """What it comes to, by the mean."""
        return in_short(self)

    @property
    def table(self) -> Table:
        """The metrics there and here."""
        title = interval_title([each.paired.interval for each in self.differences])
        return Table(
            ["metric", "baseline", "current", "difference", title, "p"],
            [
                [
                    each.metric,
                    figure_text(each.baseline),
                    figure_text(each.current),
                    figure_text(each.paired.difference, "+"),
                    span(each.paired.interval, signed=True),
                    "" if each.paired.p is None else p_value(each.paired.p),
                ]
                for each in self.differences
                if not is_repeated(each.metric)
            ],
        )


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
    baseline: str
    """Where the baseline is from; "" without one."""
    against: Sequence[Against]
    notes: Sequence[str]
    """What is said about the baseline as a whole."""
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
    candidates: Sequence[Candidates]
    suites: Sequence[SuiteView]
    environment: Sequence[tuple[str, str]]


def view_of(result: EvalResult, sections: Sections = no_sections) -> View:
    """Everything that there is to read."""
    return View(
        state=result.state,
        headline=_headline(result),
        remarks=[*_remarks(result)],
        candidates=[*candidates(result)],
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
        parts.append(f"{sum(run.passed for run in runs)} of {counted(len(runs), other)} passed")
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


def not_needed(result: EvalResult) -> str:
    """Return how many runs no gate needed any more."""
    selected = sum(suite.selected for suite in result.suites)
    left = selected - sum(suite.finished for suite in result.suites)
    return f"{left} of {selected} runs ({left / max(1, selected):.0%}) did not have to be run"


def _suite(suite: SuiteResult, sections: Sections) -> SuiteView:
    lowest, unscored = lowest_rows(suite), unscored_rows(suite)
    baseline = suite.baseline
    return SuiteView(
        name=suite.info.name,
        subject=_subject(suite),
        facts=facts(suite),
        table=figures(suite),
        by=by_columns(suite),
        verdicts=[
            (verdict.outcome, verdict.gate, verdict.sentence()) for verdict in suite.verdicts
        ],
        baseline=baseline.source or "baseline" if baseline else "",
        against=[against(each) for each in (baseline.comparisons if baseline else ())],
        notes=baseline.notes if baseline else (),
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
    on = f": {info.agent} on {info.name}" if info.agent else f": {info.name}"
    return f"{info.model}{where}{on}, {counted(info.rows, 'row')} x {counted(info.n, 'run')}"


def facts(suite: SuiteResult) -> list[str]:
    """What the session used and what is missing, a sentence each."""
    found = [*outcomes(suite), *usages(suite)]
    found += [f"{sentence}: {', '.join(kinds)}" for sentence, kinds in errors(suite)]
    if suite.finished < suite.info.total_runs:
        found.append(f"{suite.finished} of {suite.info.total_runs} runs of the evaluation are here")
    return [*found, *unusual_answers(suite), *suite.notes, *short_rows(suite)]


_ANSWERS = {
    "empty": ("was empty", "were empty"),
    "cut": ("was cut by length", "were cut by length"),
    "refused": ("was a refusal", "were refusals"),
    "filtered": ("was withheld by a content filter", "were withheld by a content filter"),
    "no tool call": (
        "ended for a tool call and has none",
        "ended for a tool call and have none",
    ),
}
"""What one, and what several answers of a kind were."""


def unusual_answers(suite: SuiteResult) -> Iterator[str]:
    """Yield a sentence for each kind of last answers that are no usual ones, and for late ones."""
    for kind, number in suite.answer_kinds.items():
        one, several = _ANSWERS.get(kind, (f"was {kind}", f"were {kind}"))
        yield f"{counted(number, 'answer')} {one if number == 1 else several}"
    for reason, number in suite.finish_reasons.items():
        if reason.lower() not in KNOWN_REASONS:
            shown = shortened(reason)
            yield f"{counted(number, 'answer')} ended in {shown!r}, an unknown finish reason"
    if late := sum(run.error_kind == NOT_STREAMED for run in suite.runs):
        yield (
            f"{counted(late, 'run')} timed out within a call that is not streamed: a slow endpoint "
            "or a long answer, taken for the endpoint's failure"
        )


def outcomes(suite: SuiteResult) -> Iterator[str]:
    """Yield how many runs came to which outcome, unless all passed."""
    counts = outcome_counts(suite)
    if [outcome for outcome, _ in counts] != ["passed"] and suite.finished:
        yield "runs: " + ", ".join(
            counted(runs, outcome) if outcome == "error" else f"{runs} {outcome}"
            for outcome, runs in counts
        )


def errors(suite: SuiteResult) -> Iterator[tuple[str, list[str]]]:
    """Yield how runs that have not all their scores count, and the kinds of their errors."""
    runs = [run for run in suite.runs if run.error_type is not None]
    if runs and all(function.mean is None for function in suite.functions):
        sentence = f"{counted(len(runs), 'run')} without a score: there are no figures"
        yield sentence, some_error_kinds(runs)
        return
    left_out = [run for run in runs if is_left_out(run, suite)]
    failed = [run for run in runs if not is_left_out(run, suite)]
    if left_out:
        sentence = f"{counted(len(left_out), 'run')} without a score, left out of every figure"
        yield sentence, some_error_kinds(left_out)
    if failed:
        verb = "counts" if len(failed) == 1 else "count"
        sentence = f"{counted(len(failed), 'run')} that failed {verb} as 0.0"
        yield sentence, some_error_kinds(failed)


def short_rows(suite: SuiteResult) -> Iterator[str]:
    """Yield over how many rows figures are that are not over all: a sentence a function."""
    for function in suite.functions:
        by_rows: dict[int, list[str]] = {}
        for figure in function.figures.values():
            is_shown = figure.metric == "mean" or figure.metric.startswith("pass@")
            if is_shown and figure.rows is not None and figure.rows < len(suite.rows):
                by_rows.setdefault(figure.rows, []).append(figure.metric)
        if by_rows and function.mean is not None and not function.is_recorded:
            of = counted(len(suite.rows), "row")
            parts = [f"{' and '.join(names)} over {n} of {of}" for n, names in by_rows.items()]
            name = f"{function.name}: " if len(suite.functions) > 1 else ""
            yield f"{name}{', '.join(parts)}: the others have too few runs that count"


def usages(suite: SuiteResult) -> Iterator[str]:
    """Yield rollouts, tokens, cost, retries, as far as they are known; for the baseline too."""
    yield _usage(suite)
    if (other := suite.baseline_model_result) is not None:
        name = other.info.model if suite.baseline is None else suite.baseline.source
        yield f"the baseline {name}: {_usage(other)}"


def _usage(suite: SuiteResult) -> str:
    kept = f" ({suite.cached} from the journal)" if suite.cached else ""
    parts = [counted(suite.finished, "rollout") + kept, *_used(suite.used, suite.info)]
    parts[1] += _parts_of_tokens(suite)
    if suite.retries:
        parts.append("1 retry" if suite.retries == 1 else f"{suite.retries} retries")
    return ", ".join(parts) + _before_repeated(suite)


def _parts_of_tokens(suite: SuiteResult) -> str:
    kinds = {
        "cached": suite.total_of("cached_tokens"),
        "reasoning": suite.total_of("reasoning_tokens"),
    }
    told = ", ".join(f"{tokens:,} {kind}" for kind, tokens in kinds.items() if tokens)
    return f" (of them {told})" if told else ""


def _before_repeated(suite: SuiteResult) -> str:
    before = suite.repeated
    if not before.runs:
        return ""
    they = "it was" if before.runs == 1 else "they were"
    used = ", ".join(_used(before, suite.info))
    return f"; {counted(before.runs, 'run')} before {they} repeated: {used}"


def _used(used: Usage, info: SuiteInfo) -> Iterator[str]:
    if used.tokens is None:
        yield "tokens unknown"
    else:
        yield f"{used.tokens:,} tokens" + _unknown(used.unknown_tokens)
    if used.cost_usd is not None:
        yield dollars(used.cost_usd) + _unknown(used.unknown_cost)
    elif info.priced and used.unknown_cost and used.tokens is not None:
        yield "cost unknown"


def _unknown(runs: int) -> str:
    return f" (unknown for {counted(runs, 'run')})" if runs else ""


def against(comparison: Comparison) -> Against:
    """One eval function here and in the baseline."""
    return Against(*(getattr(comparison, each.name) for each in fields(comparison)))


def in_short(comparison: Comparison) -> str:
    """Say what a comparison comes to, by the mean."""
    if not comparison.differences:
        return "no row is in both"
    mean, interval = comparison.differences[0], comparison.differences[0].paired.interval
    known, word = "", "no significant difference"
    if interval is not None:
        known = f" ({100 * interval.confidence:g}% {span(interval, signed=True)})"
        word = "better" if interval.low > 0 else "worse" if interval.high < 0 else word
    figures = f"{figure_text(mean.baseline)} → {figure_text(mean.current)}"
    return f"{word}: mean {figures}, {figure_text(mean.paired.difference, '+')}{known}"


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
