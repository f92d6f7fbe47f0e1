"""What the section of a failed gate says: the distance, the lowest rows, where all are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..analysis.gates.evaluate import holds
from ..escaping import counted, percent
from ..run_result import RunId, RunResult, passes
from ..suite_results import RowResult, SuiteResult
from ..verdicts import GateResult, Interval
from .highlights import Low, lowest_rows, run_name
from .tables import span

ROWS_SHOWN = 3
Sections = Callable[[RunId], str | None]


def gate_section(
    verdict: GateResult, suite: SuiteResult, *, section_of: Sections, where: str
) -> list[str]:
    """Return the lines; `section_of`: None for a run that is shown above; `where`: all rows are."""
    lines = [_distance(verdict, suite)]
    low = [] if verdict.is_measure else _lowest(verdict, suite)
    again = []
    for each in low[:ROWS_SHOWN]:
        run = next(run for run in each.row.runs if not _has_passed(run, verdict, suite))
        name, section = run_name(each.row, run, n=suite.info.n), section_of(run.run_id)
        if section is None:
            again.append(name)
        else:
            lines += ["", f"{name} ({each})", *_of_run(run, section)]
    if low:
        what = "below" if _is_of_each_row(verdict) else "did not pass every time"
        is_again = len(again) == len(low[:ROWS_SHOWN])
        place = f", shown above: {', '.join(again)}" if is_again else f": {where}"
        lines += ["", f"{counted(len(low), 'row')} {what}{place}"]
    return lines


def _distance(verdict: GateResult, suite: SuiteResult) -> str:
    """The value with its interval, and how far it is from the threshold."""
    if verdict.figure is None or verdict.low is None:
        return verdict.sentence()
    value, *others = verdict.sentence().split("; ", 1)
    parts = [f"{verdict.subject} is {value}"]
    if (interval := verdict.interval or _interval(verdict, suite)) and verdict.low == verdict.high:
        parts[0] += f" ({percent(interval.confidence)} {span(interval)})"
    short = verdict.threshold - verdict.figure
    if verdict.operator in (">=", ">") and short > 0:
        parts.append(f"{verdict.text_of(short)} short")
    elif verdict.operator in ("<=", "<") and short < 0:
        parts.append(f"{verdict.text_of(-short)} too much")
    return "; ".join([", ".join(parts), *others])


def _interval(verdict: GateResult, suite: SuiteResult) -> Interval | None:
    """The interval of the same figure in the summary's tables, which are about all rows."""
    of_sections = (section.interval(verdict) for section in suite.sections.values())
    if (interval := next(filter(None, of_sections), None)) is not None:
        return interval
    figures = (
        each.figures.get(verdict.metric) for each in suite.functions if each.name == verdict.eval_fn
    )
    return next((figure.interval for figure in figures if figure is not None), None)


def _lowest(verdict: GateResult, suite: SuiteResult) -> list[Low]:
    of_sections = (section.rows_of(verdict) for section in suite.sections.values())
    own = next((rows for rows in of_sections if rows is not None), None)
    return [
        low
        for low in lowest_rows(suite)
        if not _meets(low.row, verdict, suite) and (own is None or low.row.row_index in own)
    ]


def _meets(row: RowResult, verdict: GateResult, suite: SuiteResult) -> bool:
    """Whether the row is nothing that the gate failed for."""
    passed = [_has_passed(run, verdict, suite) for run in row.runs]
    if not _is_of_each_row(verdict):
        return all(passed)
    return holds(verdict.operator, sum(passed) / len(passed), verdict.threshold)


def _is_of_each_row(verdict: GateResult) -> bool:
    return verdict.metric == "each row"


def _has_passed(run: RunResult, verdict: GateResult, suite: SuiteResult) -> bool:
    """Whether the run passes the eval function that the gate is about."""
    if verdict.eval_fn is None or run.passed:
        return run.passed
    threshold = run.thresholds.get(verdict.eval_fn, suite.info.pass_threshold)
    return passes(run.scores.get(verdict.eval_fn), threshold)


def _of_run(run: RunResult, section: str) -> Iterator[str]:
    """What is known of a run, without the system prompt, which is the same in all."""
    text = section or run.error or run.answer or "nothing is known of it"
    yield from (line for line in text.splitlines() if not line.startswith("  system  "))
