"""The terminal's summary: a result as lines of text of a width, without colour.

What is said, and how many rows, is decided in `view` and `highlights`; here is how it fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from textwrap import wrap

from ..analysis.metrics import METRICS
from ..escaping import clamped_scores, counted, shortened
from ..run_result import RunResult, is_ready_scorer, may_differ, without_module
from ..suite_results import EvalResult, SuiteResult
from ..verdicts import GateResult
from .facts import clusters, errors, not_needed, outcomes, short_rows, unusual_answers, usages
from .formats import overviews
from .highlights import (
    LOWEST_IN_TERMINAL,
    lowest_rows,
    refusal,
    row_name,
)
from .tables import Overview, Table, by_columns, figures
from .text_table import table, wrapped

COLUMNS = 80
"""The width where there is no terminal."""
NAME_LIMIT = 36
"""Characters of an eval function's name that a table shows."""
_GATE = "gate  "
_UNBROKEN = "\N{NO-BREAK SPACE}"
_RESUME = "run the same command again to resume"
_BELOW_ERROR = " " * len("ERROR: ")


def summary(
    result: EvalResult, *, kept: bool = True, width: int = COLUMNS, verbose: bool = False
) -> list[str]:
    """Return the lines below the summary's title; `kept`: the same command can resume."""
    if (refused := refusal(result)) is not None:
        return list(_refused(result, refused, width))
    if not any(suite.finished for suite in result.suites):
        if result.halted and not result.interrupted:
            return indented(f"stopped: {result.halted}; no run had ended", width)
        if result.interrupted or not any(suite.verdicts for suite in result.suites):
            return ["no run had ended"]
    lines: list[str] = []
    for found in overviews(result):
        lines += ["", *_overview(found, width)][not lines :]
    for suite in result.suites:
        if lines:
            lines.append("")
        is_cut = bool(result.interrupted or result.halted) and len(result.suites) == 1
        titled = len(result.suites) > 1
        lines.extend(_suite(suite, width, titled=titled, counts=not is_cut, verbose=verbose))
    if result.halted:
        lines += ["", f"stopped: {result.halted}"]
    if result.is_decided:
        return [*lines, not_needed(result)]
    if result.interrupted:  # pytest says above its last line what is done
        return [*lines, *([_RESUME] if kept else [])]
    if result.halted:
        done = sum(map(_done, result.suites))
        selected = sum(suite.selected for suite in result.suites)
        step = f"; {_RESUME}" if kept else ""
        lines += [f"not complete: {share_done(done, selected)}{step}"]
    return lines


def share_done(done: int, of: int) -> str:
    """Return how many of some runs are done, as a clause."""
    return f"{done} of {counted(of, 'run')} {'is' if done == 1 else 'are'} done"


def _done(suite: SuiteResult) -> int:
    """Return how many runs the same command does not run again."""
    return sum(
        not may_differ(run.error_type, run.error_kind, fatal=run.fatal) for run in suite.runs
    )


def suite_lines(suite: SuiteResult, *, width: int = COLUMNS) -> list[str]:
    """Return what there is to say of one evaluation: figures, gates, what to look at first."""
    return list(_suite(suite, width, titled=False))


def _refused(result: EvalResult, run: RunResult, width: int) -> Iterator[str]:
    """Say in a few lines why no run has a score, and what to do."""
    tried = sum(suite.finished for suite in result.suites)
    of = sum(suite.selected for suite in result.suites)
    is_down = run.error_kind == "unreachable"
    yield from wrap(
        f"ERROR: {result.halted}{'. Is the server running?' if is_down else ''}",
        width, subsequent_indent=_BELOW_ERROR, break_on_hyphens=False,
    )  # fmt: skip
    runs = "The only run was" if tried == of == 1 else f"{tried} of {counted(of, 'run')} were"
    if tried == 1 < of:
        runs = f"1 of {of} runs was"
    yield from indented(f"{runs} tried, none has a score.", width, _BELOW_ERROR)
    first = "Start it" if is_down else "Correct it"
    yield from indented(f"{first} and run the same command again.", width, _BELOW_ERROR)
    found = Counter(verdict.outcome for suite in result.suites for verdict in suite.verdicts)
    if found:
        gates = ", ".join(f"{number} {outcome}" for outcome, number in sorted(found.items()))
        yield from indented(f"gates: {gates}", width, _BELOW_ERROR)


def _suite(
    suite: SuiteResult,
    width: int,
    *,
    titled: bool,
    counts: bool = True,
    verbose: bool = False,
) -> Iterator[str]:
    """What there is to say of one evaluation; `counts` unless something else says what ended."""
    if titled:
        yield suite.info.name
    if suite.functions and suite.finished:
        yield from fitted(figures(suite), width)
        yield ""
    for found in by_columns(suite):
        yield from indented(found.title, width)
        yield from fitted(found.table, width)
        if found.left_out:
            yield f"and {counted(found.left_out, 'more value')}"
        yield ""
    if suite.verdicts:
        yield from _gates(suite.verdicts, width)
        yield ""
    for section in suite.sections.values():
        yield from section.lines(suite, is_titled=titled, width=width, verbose=verbose)
    yield from _notes(suite, width, counts=counts)


def _overview(found: Overview, width: int) -> Iterator[str]:
    yield from indented(found.title, width)
    for shown in (found.table, found.pairs):
        if shown.rows:
            yield from [""] if shown is found.pairs else []
            yield from fitted(shown, width)
    yield from (line for note in found.notes for line in indented(note, width))


def fitted(shown: Table, width: int) -> Iterator[str]:
    """A table of figures; where it is too wide, without the modules of functions.

    Where that is not enough, without the middle k of metrics, the largest first; and else as a few
    lines for each name.
    """
    ks: dict[str, list[str]] = {}
    for title in shown.header:
        if (found := METRICS.get(title.rstrip("0123456789"))) is not None and found.takes_k:
            ks.setdefault(found.name, []).append(title)
    middle = (enumerate(each[1:-1]) for each in ks.values())
    least_first = [title for _, title in sorted(chain.from_iterable(middle), reverse=True)]
    names = _shortened([name for name, *_ in shown.rows])
    rows = [[name, *cells] for name, (_, *cells) in zip(names, shown.rows, strict=True)]
    short = [without_module(name) for name in names]
    whole = table([shown.header, *rows], None, numbers=True)
    if max(map(len, whole)) > width and len(set(short)) == len(short):
        rows = [[name, *cells] for name, (_, *cells) in zip(short, rows, strict=True)]
    return table([shown.header, *rows], width, least_first=least_first, numbers=True)


def _gates(verdicts: Sequence[GateResult], width: int) -> Iterator[str]:
    """One gate a line where that is enough; else what was found goes below it."""
    longest = max(len(verdict.gate) for verdict in verdicts)
    for verdict in verdicts:
        word, said = verdict.outcome.upper(), verdict.sentence()
        name = f"{_GATE}{verdict.gate}"
        line = f"{name:<{len(_GATE) + longest}}  {said}"
        if len(line) + 2 + len(word) <= min(width, COLUMNS):
            yield line.ljust(min(width, COLUMNS) - len(word)) + word
            continue
        if len(name) + 2 + len(word) <= width:
            yield name.ljust(min(width, COLUMNS) - len(word)) + word
        else:
            yield from wrap(name, width, subsequent_indent=" " * len(_GATE))
            said = f"{word}: {said}"
        yield from indented(said, width, " " * len(_GATE))


def _notes(suite: SuiteResult, width: int, *, counts: bool) -> Iterator[str]:
    if lowest := _lowest(suite):
        yield from _named("lowest rows", lowest, width)
    for each in [*clusters(suite), *outcomes(suite), *usages(suite)]:
        yield from indented(each, width)
    for sentence, kinds in errors(suite):
        yield from indented(sentence, width)
        yield from indented(", ".join(kinds), width, "  ")
    for note in _remarks(suite, counts=counts):
        yield from indented(note, width)


def _remarks(suite: SuiteResult, *, counts: bool) -> Iterator[str]:
    """What the figures leave out, a sentence each."""
    yield from unusual_answers(suite)
    yield from (f"{note} ({counted(runs, 'run')})" for note, runs in suite.notes.items())
    if clamped := suite.total_of("clamped"):
        yield clamped_scores(clamped)
    if suite.selected < suite.info.total_runs:
        yield f"partial: {suite.selected} of {suite.info.total_runs} runs selected"
    if counts and suite.finished < suite.selected:
        yield f"partial: {suite.finished} of {suite.selected} selected runs have ended"
    yield from short_rows(suite)


def _lowest(suite: SuiteResult) -> list[str]:
    short = lowest_rows(suite)[:LOWEST_IN_TERMINAL]
    if suite.info.n == 1:
        return [shortened(row_name(low.row)) for low in short]
    return [f"{shortened(row_name(low.row))} {low.passed}/{low.scored}" for low in short]


def _shortened(names: Sequence[str]) -> list[str]:
    """Return names for a table: of long ones what says most, and no two alike."""
    shown = [
        shortened(name, NAME_LIMIT) if is_ready_scorer(name) else _tail(name) for name in names
    ]
    return shown if len(set(shown)) == len(set(names)) else [*names]


def _tail(name: str) -> str:
    return name if len(name) <= NAME_LIMIT else f"…{name[1 - NAME_LIMIT :]}"


def _named(what: str, names: Sequence[str], width: int) -> list[str]:
    """Names on as many lines as they need, none broken at a space of its own."""
    whole = ", ".join(name.replace(" ", _UNBROKEN) for name in names)
    lines = wrap(f"{what}: {whole}", width, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace(_UNBROKEN, " ") for line in lines]


def indented(text: str, width: int, indent: str = "") -> list[str]:
    """Return a line, broken between words and indented."""
    return wrapped(indent + text, width, below=len(indent) or 2)


def next_step(result: EvalResult, is_kept: Callable[[str], bool]) -> str | None:
    """Say what to do about kept runs that have no score through no fault of the agent's."""
    kept = [suite for suite in result.suites if suite.errors and is_kept(suite.info.name)]
    errors = Counter(
        str(run.error_type)
        for suite in kept
        for run in suite.runs
        if may_differ(run.error_type, run.error_kind, fatal=run.fatal)
    )
    number = sum(errors.values())
    if not number or result.halted or result.interrupted:
        return None
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(errors.items()))
    runs, it = ("1 run has", "it") if number == 1 else (f"{number} runs have", "them")
    return f"{runs} no score ({kinds}): run the same command again to fill {it} in"
