"""The terminal's summary: a result as lines of text in 80 columns, without colour.

What is said is decided in `view` and `highlights`; here is how it fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from ..escaping import escape_control_chars
from ..results import EvalResult, RowResult, Saved, SuiteResult, may_differ
from ..verdicts import Change, GateResult, counted
from .highlights import lowest_rows, row_name, slow_runs, some_error_kinds
from .view import Against, Table, against, figure_metrics, figures, usage

COLUMNS = 80
LOWEST_ROWS = 5
CHANGED_ROWS = 10
NAME_LIMIT, SHORT_NAME = 36, 16
"""Characters of an eval function's name that the table shows, and in a wide table at least."""
ROW_LIMIT = 40
"""Characters of a row's name."""
_GATE = "gate  "


def summary(result: EvalResult, *, kept: bool = True) -> list[str]:
    """Return the lines below the summary's title; `kept`: the same command can go on."""
    lines: list[str] = []
    for suite in result.suites:
        if lines:
            lines.append("")
        lines.extend(_suite(suite, titled=len(result.suites) > 1))
    if result.halted:
        lines += ["", f"stopped: {result.halted}"]
    if result.saved is not None:
        return [*lines, _saved(result.saved)]
    if result.interrupted or result.halted:
        done = sum(suite.finished for suite in result.suites)
        selected = sum(suite.selected for suite in result.suites)
        how = "interrupted" if result.interrupted else "not complete"
        step = "; run the same command again to go on" if kept else ""
        lines += [f"{how}: {done} of {selected} runs are done{step}"]
    return lines


def changes(each: Against) -> Iterator[str]:
    """Yield the lines about one eval function against a baseline: the table, then the rows."""
    title = f"{each.eval_fn}, {counted(each.rows, 'row')} compared"
    if each.is_unchanged:
        yield f"{title}: no difference"
        return
    yield title
    yield from (f"  {line}" for line in aligned(each.table))
    for what, rows in (("newly broken", each.regressed), ("fixed", each.fixed)):
        if rows:
            yield ""
            yield f"  {what}: {counted(len(rows), 'row')}"
            yield from _moved(rows)


def aligned(table: Table, *, names: int = COLUMNS) -> list[str]:
    """Return a table's lines, its columns below each other; `names` as the longest name."""
    rows = [table.header, *([_tail(name, names), *cells] for name, *cells in table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _suite(suite: SuiteResult, *, titled: bool) -> Iterator[str]:
    if titled:
        yield suite.info.name
    if suite.functions:
        yield from _table(suite)
        yield ""
    if suite.verdicts:
        yield from _gates(suite.verdicts)
        yield ""
    if suite.baseline:
        yield f"against the baseline {suite.baseline.source}"
        for note in suite.baseline.notes:
            yield from _wrapped(note, "  ")
        for comparison in suite.baseline.comparisons:
            yield from changes(against(comparison))
        yield ""
    yield from _notes(suite)


def _table(suite: SuiteResult) -> list[str]:
    """The figures of each function; what does not fit gives way: pass^n, the middle k, names."""
    shown = figure_metrics(suite)
    lines = aligned(figures(suite, shown), names=NAME_LIMIT)
    while (over := max(map(len, lines)) - COLUMNS) > 0 and (less := _narrower(shown)):
        shown = less
        lines = aligned(figures(suite, shown), names=NAME_LIMIT)
    if over > 0:
        names = max(min(len(function.name), NAME_LIMIT) for function in suite.functions)
        lines = aligned(figures(suite, shown), names=max(SHORT_NAME, names - over))
    return lines


def _narrower(metrics: Sequence[str]) -> list[str]:
    """One column less: of the last kind with a k, the middle k; of the first kind, two stay."""
    kinds = {metric: metric.rstrip("0123456789") for metric in metrics}
    several = [kind for metric, kind in kinds.items() if kind != metric]
    if not several:
        return []
    of_last = [metric for metric in metrics if kinds[metric] == several[-1]]
    if several[-1] == several[0] and len(of_last) <= 2:
        return []
    return [metric for metric in metrics if metric != of_last[len(of_last) // 2]]


def _gates(verdicts: Sequence[GateResult]) -> Iterator[str]:
    """One gate a line where that is enough; else what was found goes below it."""
    width = max(len(verdict.gate) for verdict in verdicts)
    for verdict in verdicts:
        word, said = verdict.outcome.upper(), verdict.sentence()
        name = f"{_GATE}{verdict.gate}"
        line = f"{name:<{len(_GATE) + width}}  {said}"
        if len(line) + 2 + len(word) <= COLUMNS:
            yield line.ljust(COLUMNS - len(word)) + word
            continue
        if len(name) + 2 + len(word) <= COLUMNS:
            yield name.ljust(COLUMNS - len(word)) + word
        else:
            yield name
            said = f"{word}: {said}"
        yield from _wrapped(said, " " * len(_GATE))


def _saved(saved: Saved) -> str:
    """What was not run, in runs and in what they would have taken."""
    share = f"{saved.runs / saved.of:.0%}" if saved.of else "0%"
    about = []
    if saved.tokens is not None:
        about.append(f"{saved.tokens:,.0f} tokens")
    if saved.cost_usd is not None:
        about.append(f"${saved.cost_usd:.4f}")
    more = f", about {' and '.join(about)}" if about and saved.runs else ""
    return f"{saved.runs} of {saved.of} runs ({share}) did not have to be run{more}"


def _notes(suite: SuiteResult) -> Iterator[str]:
    if lowest := _lowest(suite):
        yield from _named("lowest rows", lowest)
    if slowest := slow_runs(suite):
        yield from _named("slowest", slowest)
    yield usage(suite)
    if suite.errors:
        runs = counted(sum(suite.errors.values()), "run")
        yield f"{runs} ended in an error; a missing score counts as 0.0"
        yield from _wrapped(", ".join(some_error_kinds(suite)), "  ")
    if cut := suite.finish_reasons.get("length"):
        yield f"{cut} {'answer was' if cut == 1 else 'answers were'} cut by length"
    if suite.selected < suite.info.total_runs:
        yield f"partial: selected {suite.selected} of {suite.info.total_runs} runs"
    if suite.finished < suite.selected:
        yield f"partial: {suite.finished} of {suite.selected} selected runs have ended"
    if suite.short_rows and suite.info.n > 1:
        rows = "1 row has" if suite.short_rows == 1 else f"{suite.short_rows} rows have"
        yield f"{rows} fewer than {suite.info.n} runs: pass@k uses the runs that are there"


def _lowest(suite: SuiteResult) -> list[str]:
    short = lowest_rows(suite)[:LOWEST_ROWS]
    if suite.info.n == 1:
        return [_name(low.row) for low in short]
    return [f"{_name(low.row)} {low.passed}/{low.scored}" for low in short]


def _moved(rows: Sequence[Change]) -> Iterator[str]:
    for row in rows[:CHANGED_ROWS]:
        yield f"    {row.name}  {row.passes}"
        for label, answer in (("was", row.baseline_answer), ("now", row.answer)):
            if answer:
                yield f"      {label}  {_short(answer)}"
    if len(rows) > CHANGED_ROWS:
        yield f"    and {len(rows) - CHANGED_ROWS} more"


def _short(text: str) -> str:
    room = COLUMNS - len("      was  ")
    flat = " ".join(escape_control_chars(text).split())
    return flat if len(flat) <= room else flat[: room - 2] + " …"


def _tail(name: str, limit: int) -> str:
    """The end of a name, which tells most."""
    return name if len(name) <= limit else f"…{name[1 - limit :]}"


def _name(row: RowResult) -> str:
    name = row_name(row)
    return name if len(name) <= ROW_LIMIT else f"{name[: ROW_LIMIT - 1]}…"


def _named(what: str, names: Sequence[str]) -> list[str]:
    """Names on as many lines as they need."""
    text = f"{what}: {', '.join(names)}"
    return wrap(text, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=indent)


def next_step(result: EvalResult, is_kept: Callable[[str], bool]) -> str | None:
    """Say what to do about kept runs that have no score through no fault of the agent's."""
    kept = [suite for suite in result.suites if is_kept(suite.info.name)]
    errors = Counter(
        str(run.error_type)
        for suite in kept
        for row in suite.rows
        for run in row.runs
        if may_differ(run.error_type, run.error_kind)
    )
    number = sum(errors.values())
    if not number or result.halted or result.interrupted:
        return None
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(errors.items()))
    runs, it = ("1 run has", "it") if number == 1 else (f"{number} runs have", "them")
    return f"{runs} no score ({kinds}): run the same command again to fill {it} in"
