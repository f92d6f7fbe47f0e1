"""What people look at first in a result: the lowest rows, the errors and their counts.

Pure; every report that names rows picks them here, and as many as is said here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..escaping import counted, without_rounding_error
from ..outcomes import OUTCOMES, Outcome
from ..run_result import OWN_ACCOUNT, UNSCORABLE, RunResult, passes

if TYPE_CHECKING:
    from ..suite_results import EvalResult, RowResult, SuiteResult

LOWEST_IN_TERMINAL, LOWEST_IN_FILES = 5, 10
"""Rows that did not pass every time which the terminal names, and Markdown and HTML."""
RUNS_IN_FILES = 3
"""Runs that did not pass of each of those rows, in Markdown and HTML."""
ERROR_KINDS_SHOWN = 5
"""Kinds of errors that every report names; it counts the others together."""
HUGE = 1e6
_EXCEPTION = re.compile(r"(?:^|` raised )(\w+(?:Error|Exception))\b")


@dataclass(frozen=True, slots=True)
class Low:
    """A row of which a run that counts did not pass."""

    row: RowResult
    mean: float
    """Of what its runs count for, recorded scores left out."""
    passed: int
    """Runs that passed."""
    scored: int
    """Runs that count; never 0."""

    @property
    def rank(self) -> tuple[float, float, int]:
        """The lower, the worse: by the runs that count."""
        return self.passed / self.scored, self.mean, self.row.row_index

    def __str__(self) -> str:
        return f"{self.passed} of {counted(self.scored, 'run')} passed"


def figure_text(figure: float | None, sign: str = "") -> str:
    """A figure in a table: three digits behind the point, unless it is out of all proportion.

    A dash stands where there is none.
    """
    if figure is None:
        return "-"
    number = without_rounding_error(figure)
    return f"{number:{sign}.3f}" if abs(number) < HUGE else f"{number:{sign}.3g}"


def outcome_counts(suite: SuiteResult) -> list[tuple[Outcome, int]]:
    """Return how many runs came to which outcome, the best first; those not run come last."""
    counts = Counter[Outcome](run.outcome for run in suite.runs)
    counts["not run"] += max(0, suite.selected - suite.finished)
    return [(outcome, counts[outcome]) for outcome in OUTCOMES if counts[outcome]]


def refusal(result: EvalResult) -> RunResult | None:
    """The run whose error ended the session before any run had a score, if one did."""
    if result.halted is None or any(map(_says_something, result.runs)):
        return None
    return next((run for run in result.runs if run.error == result.halted), None)


def _says_something(run: RunResult) -> bool:
    own = run.error_type in OWN_ACCOUNT and run.error_kind not in UNSCORABLE
    return bool(run.scores) or own


def row_name(row: RowResult) -> str:
    """The row as people know it."""
    return row.row_id or f"row-{row.row_index}"


def run_name(row: RowResult, run: RunResult, *, n: int) -> str:
    """The run as people know it; just the row where it has one run."""
    return row_name(row) if n == 1 else f"{row_name(row)}[run-{run.run_index}]"


def lowest_rows(suite: SuiteResult) -> list[Low]:
    """The rows that are not perfect: the fewest passes of runs that count, then the lowest mean.

    A run that is left out of the figures says nothing about its row. Where no run has a score, no
    row is lower than another.
    """
    if not any(run.scores for run in suite.runs):
        return []
    low = []
    for row in suite.deciding_rows:
        runs = [(run, counted) for run in row.runs if (counted := _counted_scores(run, suite))]
        passed = [_scores_pass(run, counted, suite) for run, counted in runs]
        if not all(passed):
            scores = [score for _, counted in runs for score in counted.values()]
            low.append(Low(row, sum(scores) / len(scores), sum(passed), len(passed)))
    return sorted(low, key=lambda each: each.rank)


def unscored_rows(suite: SuiteResult) -> list[RowResult]:
    """The rows of which a run is left out of figures, if they are not low."""
    low = {each.row.row_index for each in lowest_rows(suite)}
    return [
        row
        for row in suite.rows
        if row.row_index not in low and any(is_left_out(run, suite) for run in row.runs)
    ]


def unscored_share(row: RowResult, suite: SuiteResult) -> str:
    """How many runs of a row are left out of figures, of how many."""
    lacking = sum(is_left_out(run, suite) for run in row.runs)
    verb = "has" if lacking == 1 else "have"
    return f"{lacking} of {counted(len(row.runs), 'run')} {verb} no score"


def is_left_out(run: RunResult, suite: SuiteResult) -> bool:
    """Return whether a run that ended does not count for an eval function."""
    return len(_counted_scores(run, suite)) < len(suite.info.eval_fns)


def _counted_scores(run: RunResult, suite: SuiteResult) -> dict[str, float]:
    """Return what a run counts for, by eval function, as far as it counts."""
    names = suite.info.eval_fns
    return {name: score for name in names if (score := run.counted_score(name)) is not None}


def _scores_pass(run: RunResult, scores: Mapping[str, float], suite: SuiteResult) -> bool:
    """Whether a run passed, or every score that it counts for does where a judge gave none."""
    own, usual = suite.info.thresholds, suite.info.pass_threshold
    if run.error_type != "eval_fn":
        return run.passed
    return all(passes(score, own.get(name, usual)) for name, score in scores.items())


def error_kinds(runs: Iterable[RunResult]) -> list[tuple[str, int]]:
    """Kinds of errors with their counts, the commonest first: "provider: overloaded", "timeout"."""
    counts = Counter(error_kind(run) for run in runs if run.error_type)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def some_error_kinds(runs: Iterable[RunResult]) -> list[str]:
    """Kinds with their counts, as people read them; the rare ones together."""
    kinds = error_kinds(runs)
    shown = [f"{kind} {count}" for kind, count in kinds[:ERROR_KINDS_SHOWN]]
    others = sum(count for _, count in kinds[ERROR_KINDS_SHOWN:])
    return [*shown, f"others {others}"] if others else shown


def error_kind(run: RunResult) -> str:
    """What kind of error a run ended in; for an error of the user's code, the exception's name."""
    kind = run.error_type or ""
    detail = run.error_kind or (_exception(run.error) if kind in ("agent", "eval_fn") else None)
    shown = "raised" if kind == "agent" else kind
    return f"{shown} {detail}" if detail else shown


def _exception(message: str | None) -> str | None:
    """The name in "KeyError: 'x'" or "`rewards:judge` raised KeyError: 'x'"."""
    found = _EXCEPTION.search(message or "")
    return found[1] if found else None
