"""What the terminal shows of an `EvalResult`: lines of text, 80 columns, no colour of its own."""

from __future__ import annotations

from collections.abc import Iterator

from ..results import EvalResult, FunctionResult, RowResult, SuiteResult

LOWEST_ROWS = 5


def summary(result: EvalResult) -> list[str]:
    """The lines below the summary's title."""
    lines: list[str] = []
    for suite in result.suites:
        if lines:
            lines.append("")
        lines.extend(_suite(suite, titled=len(result.suites) > 1))
    if result.halted:
        lines += ["", f"stopped: {result.halted}"]
    return lines


def _suite(suite: SuiteResult, *, titled: bool) -> Iterator[str]:
    if titled:
        yield suite.info.name
    if suite.functions:
        yield from _table(suite)
        yield ""
    yield from _notes(suite)


def _table(suite: SuiteResult) -> list[str]:
    ks = sorted({k for function in suite.functions for k in function.pass_at})
    header = ["eval function", "mean", "std", *(f"pass@{k}" for k in ks)]
    header += [f"pass^{ks[-1]}"] if ks else []
    header.append("scored")
    rows = [_cells(function, ks, suite) for function in suite.functions]
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


def _cells(function: FunctionResult, ks: list[int], suite: SuiteResult) -> list[str]:
    cells = [function.name, f"{function.mean:.3f}", f"{function.std:.3f}"]
    cells += [f"{function.pass_at[k]:.3f}" for k in ks]
    cells += [f"{function.pass_hat[ks[-1]]:.3f}"] if ks else []
    return [*cells, f"{function.scored}/{suite.finished}"]


def _notes(suite: SuiteResult) -> Iterator[str]:
    lowest = _lowest(suite)
    if lowest:
        yield "lowest rows: " + ", ".join(lowest)
    yield _usage(suite)
    if suite.errors:
        counts = ", ".join(f"{kind} {count}" for kind, count in suite.errors.items())
        number = sum(suite.errors.values())
        runs = "1 run" if number == 1 else f"{number} runs"
        yield f"{runs} ended in an error ({counts}); a missing score counts as 0.0"
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
    cost = "" if suite.cost_usd is None else f", ${suite.cost_usd:.4f}"
    retries = ""
    if suite.retries:
        retries = ", 1 retry" if suite.retries == 1 else f", {suite.retries} retries"
    rollouts = "1 rollout" if suite.finished == 1 else f"{suite.finished} rollouts"
    return f"{rollouts}, {tokens}{cost}{retries}"


def _lowest(suite: SuiteResult) -> list[str]:
    """The rows with the fewest passing runs, at most five, only those that are not perfect."""
    tallies = [(sum(run.passed for run in row.runs), row) for row in suite.rows]
    short = [(passed, row) for passed, row in tallies if passed < len(row.runs)]
    short.sort(key=lambda pair: (pair[0] / len(pair[1].runs), pair[1].row_index))
    if suite.info.n == 1:
        return [_name(row) for _, row in short[:LOWEST_ROWS]]
    return [f"{_name(row)} {passed}/{len(row.runs)}" for passed, row in short[:LOWEST_ROWS]]


def _name(row: RowResult) -> str:
    return row.row_id or f"row-{row.row_index}"
