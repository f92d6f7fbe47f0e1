"""Sentences about a suite, without markup: what its runs came to, used and lack.

Every report takes them from here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from osmosis_ai.models.answers import KNOWN_REASONS

from ..analysis.statistics.estimators import FEWEST_CLUSTERS
from ..escaping import counted, dollars, shortened
from ..run_result import NOT_STREAMED, RunResult, SuiteInfo
from ..suite_results import EvalResult, SuiteResult, Usage
from .highlights import is_left_out, outcome_counts, some_error_kinds


def not_needed(result: EvalResult) -> str:
    """Return how many runs no gate needed any more."""
    selected = sum(suite.selected for suite in result.suites)
    left = selected - sum(suite.finished for suite in result.suites)
    return f"{left} of {selected} runs ({left / max(1, selected):.0%}) did not have to be run"


def facts(suite: SuiteResult) -> list[str]:
    """What the session used and what is missing, a sentence each."""
    found = [*clusters(suite), *outcomes(suite), *usages(suite)]
    found += [f"{sentence}: {', '.join(kinds)}" for sentence, kinds in errors(suite)]
    if suite.finished < suite.info.total_runs:
        found.append(f"{suite.finished} of {suite.info.total_runs} runs of the evaluation are here")
    return [*found, *unusual_answers(suite), *suite.notes, *short_rows(suite)]


def clusters(suite: SuiteResult) -> Iterator[str]:
    """Yield by what rows belong together, and what follows for intervals."""
    if column := suite.info.cluster_column:
        aside = suite.info.is_quarantined
        there = {row.row_index for row in suite.rows if not aside(row.row_index, row.row_id)}
        number = sum(not there.isdisjoint(rows) for rows in suite.info.clusters.values())
        found = f"{counted(number, 'cluster')} by {shortened(column)}"
        if number == len(there):
            yield f"{found}, each of one row: intervals are those of rows"
        elif number < FEWEST_CLUSTERS:
            yield f"{found}: fewer than {FEWEST_CLUSTERS} have no interval"
        else:
            yield f"{found}: intervals are by cluster"


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
    """Yield how many runs came to which outcome, unless all passed, and how many rows to both."""
    counts = outcome_counts(suite)
    if [outcome for outcome, _ in counts] != ["passed"] and suite.finished:
        runs = ", ".join(
            counted(runs, outcome) if outcome == "error" else f"{runs} {outcome}"
            for outcome, runs in counts
        )
        mixed = f"; {mixed_rows(suite)} (some runs pass, others fail)" if suite.mixed_rows else ""
        yield f"runs: {runs}{mixed}"


def mixed_rows(suite: SuiteResult) -> str:
    """Return how many rows are mixed."""
    return f"{suite.mixed_rows} of {counted(len(suite.rows), 'row')} mixed"


def errors(suite: SuiteResult) -> Iterator[tuple[str, list[str]]]:
    """Yield how runs that have not all their scores count, and the kinds of their errors."""
    runs = [run for run in suite.runs if run.error_type is not None]
    if runs and all(function.mean is None for function in suite.functions):
        sentence = f"{counted(len(runs), 'run')} without a score: there are no figures"
        yield sentence, some_error_kinds(runs)
        return
    left_out = [run for run in runs if _is_in_no_figure(run, suite)]
    failed = [run for run in runs if not _is_in_no_figure(run, suite)]
    if left_out:
        sentence = f"{counted(len(left_out), 'run')} without a score, left out of every figure"
        yield sentence, some_error_kinds(left_out)
    if failed:
        verb = "counts" if len(failed) == 1 else "count"
        sentence = f"{counted(len(failed), 'run')} that failed {verb} as 0.0"
        yield sentence, some_error_kinds(failed)


def _is_in_no_figure(run: RunResult, suite: SuiteResult) -> bool:
    return is_left_out(run, suite) or suite.info.is_quarantined(run.row_index, run.row_id)


def short_rows(suite: SuiteResult) -> Iterator[str]:
    """Yield over how many rows figures are that are not over all: a sentence a function."""
    rows = len(suite.deciding_rows)
    for function in suite.functions:
        by_rows: dict[int, list[str]] = {}
        for figure in function.figures.values():
            is_shown = figure.metric == "mean" or figure.metric.startswith("pass@")
            if is_shown and figure.rows is not None and figure.rows < rows:
                by_rows.setdefault(figure.rows, []).append(figure.metric)
        if by_rows and function.mean is not None and not function.is_recorded:
            of = counted(rows, "row")
            parts = [f"{' and '.join(names)} over {n} of {of}" for n, names in by_rows.items()]
            name = f"{function.name}: " if len(suite.functions) > 1 else ""
            yield f"{name}{', '.join(parts)}: the others have too few runs that count"


def usages(suite: SuiteResult) -> Iterator[str]:
    """Yield rollouts, tokens, cost, retries, as far as they are known."""
    yield usage_of(suite)
    for section in suite.sections.values():
        yield from section.usage(suite)


def usage_of(suite: SuiteResult) -> str:
    """Return rollouts, tokens, cost and retries of a suite in a sentence."""
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
