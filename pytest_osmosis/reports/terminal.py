"""What the terminal shows of an `EvalResult`: lines of text, 80 columns, no colour of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ..results import EvalResult, FunctionResult, RowResult, SuiteResult
from .highlights import lowest_rows, row_name, shown, slow_runs, some_error_kinds

LOWEST_ROWS = 5
COLUMNS = 80
NAME_LIMIT, SHORT_NAME = 36, 16
"""Characters of an eval function's name that the table shows, and in a wide table at least."""
ROW_LIMIT = 40
"""Characters of a row's name."""


def summary(result: EvalResult) -> list[str]:
    """The lines below the summary's title."""
    lines: list[str] = []
    for suite in result.suites:
        if lines:
            lines.append("")
        lines.extend(_suite(suite, titled=len(result.suites) > 1))
    if result.halted:
        lines += ["", f"stopped: {result.halted}"]
    if result.saved is not None:
        from .verdicts import saved_line

        return [*lines, saved_line(result.saved)]
    if result.interrupted or result.halted:
        done = sum(suite.finished for suite in result.suites)
        selected = sum(suite.selected for suite in result.suites)
        how = "interrupted" if result.interrupted else "not complete"
        lines += [f"{how}: {done} of {selected} runs are done; run the same command again to go on"]
    return lines


def _suite(suite: SuiteResult, *, titled: bool) -> Iterator[str]:
    if titled:
        yield suite.info.name
    if suite.functions:
        yield from _table(suite)
        yield ""
    yield from _decided(suite)
    yield from _notes(suite)


def _decided(suite: SuiteResult) -> Iterator[str]:
    """Gates and baseline; what they need is imported where there are any."""
    if suite.verdicts or suite.baseline:
        from . import verdicts

        if suite.verdicts:
            yield from verdicts.gate_lines(suite)
            yield ""
        if suite.baseline:
            yield from verdicts.baseline_lines(suite.baseline)
            yield ""


def _table(suite: SuiteResult) -> list[str]:
    """The figures of each function; what does not fit gives way: pass^n, the middle k, names."""
    ks = sorted({k for function in suite.functions for k in function.pass_at})
    hats = ks[-1:]
    lines = _laid_out(suite, ks, hats)
    while max(map(len, lines)) > COLUMNS and (hats or len(ks) > 2):
        if hats:
            hats = []
        else:
            del ks[len(ks) // 2]
        lines = _laid_out(suite, ks, hats)
    if over := max(0, max(map(len, lines)) - COLUMNS):
        names = max(len(_tail(function.name, NAME_LIMIT)) for function in suite.functions)
        lines = _laid_out(suite, ks, hats, limit=max(SHORT_NAME, names - over))
    return lines


def _laid_out(
    suite: SuiteResult, ks: list[int], hats: list[int], *, limit: int = NAME_LIMIT
) -> list[str]:
    known = (each for function in suite.functions for each in function.intervals.values())
    confidence = next((interval.confidence for interval in known), 0.95)
    header = ["eval function", "mean", f"{100 * confidence:g}% interval"]
    header += [*(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in hats), "scored"]
    rows = [
        [_tail(function.name, limit), *_cells(function, ks, hats, suite)]
        for function in suite.functions
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in [header, *rows]
    ]


def _cells(
    function: FunctionResult, ks: list[int], hats: list[int], suite: SuiteResult
) -> list[str]:
    interval = function.intervals.get("mean")
    span = "-" if interval is None else f"{shown(interval.low)} .. {shown(interval.high)}"
    cells = [shown(function.mean), span]
    cells += [f"{function.pass_at[k]:.3f}" for k in ks]
    cells += [f"{function.pass_hat[k]:.3f}" for k in hats]
    return [*cells, f"{function.scored}/{suite.finished}"]


def _tail(name: str, limit: int) -> str:
    """The end of a name, which tells most."""
    return name if len(name) <= limit else f"…{name[1 - limit :]}"


def _named(what: str, rows: Sequence[str]) -> list[str]:
    """Rows on as many lines as they need."""
    listed = ", ".join(rows)
    return wrap(f"{what}: {listed}", COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


def _notes(suite: SuiteResult) -> Iterator[str]:
    lowest = _lowest(suite)
    if lowest:
        yield from _named("lowest rows", lowest)
    if slowest := slow_runs(suite):
        yield from _named("slowest", slowest)
    yield _usage(suite)
    if suite.errors:
        number = sum(suite.errors.values())
        runs = "1 run" if number == 1 else f"{number} runs"
        yield f"{runs} ended in an error; a missing score counts as 0.0"
        kinds = ", ".join(some_error_kinds(suite))
        yield from wrap(kinds, COLUMNS, initial_indent="  ", subsequent_indent="  ")
    if cut := suite.finish_reasons.get("length"):
        yield f"{cut} {'answer was' if cut == 1 else 'answers were'} cut by length"
    if suite.selected < suite.info.total_runs:
        yield f"partial: selected {suite.selected} of {suite.info.total_runs} runs"
    if suite.finished < suite.selected:
        yield f"partial: {suite.finished} of {suite.selected} selected runs have ended"
    if suite.short_rows and suite.info.n > 1:
        rows = "1 row has" if suite.short_rows == 1 else f"{suite.short_rows} rows have"
        yield f"{rows} fewer than {suite.info.n} runs: pass@k uses the runs that are there"


def _usage(suite: SuiteResult) -> str:
    if suite.total_tokens is None:
        tokens = "tokens unknown"
    else:
        tokens = f"{suite.total_tokens:,} tokens"
        if suite.unknown_tokens:
            runs = "1 run" if suite.unknown_tokens == 1 else f"{suite.unknown_tokens} runs"
            tokens += f" (unknown for {runs})"
    retries = ""
    if suite.retries:
        retries = ", 1 retry" if suite.retries == 1 else f", {suite.retries} retries"
    rollouts = "1 rollout" if suite.finished == 1 else f"{suite.finished} rollouts"
    if suite.cached:
        rollouts += f" ({suite.cached} from the journal)"
    return f"{rollouts}, {tokens}{_cost(suite)}{retries}"


def _cost(suite: SuiteResult) -> str:
    if suite.cost_usd is None:
        return ", cost unknown" if suite.info.priced and suite.unknown_cost else ""
    if not suite.unknown_cost:
        return f", ${suite.cost_usd:.4f}"
    runs = "1 run" if suite.unknown_cost == 1 else f"{suite.unknown_cost} runs"
    return f", ${suite.cost_usd:.4f} (unknown for {runs})"


def _lowest(suite: SuiteResult) -> list[str]:
    short = lowest_rows(suite)[:LOWEST_ROWS]
    if suite.info.n == 1:
        return [_name(low.row) for low in short]
    return [f"{_name(low.row)} {low.passed}/{len(low.row.runs)}" for low in short]


def _name(row: RowResult) -> str:
    name = row_name(row)
    return name if len(name) <= ROW_LIMIT else f"{name[: ROW_LIMIT - 1]}…"
