"""What was decided, as lines of text in 80 columns: gates, what changed, what stopping saved."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ..analysis.comparison import BaselineReport
from ..gates.result import GateResult
from ..results import Saved, SuiteResult
from . import changes
from .view import against

WIDTH = 80
_MARGIN = "gate  "


def gate_lines(suite: SuiteResult) -> Iterator[str]:
    """One gate a line where that is enough; else what was found goes below it."""
    width = max((len(verdict.gate.text) for verdict in suite.verdicts), default=0)
    for verdict in suite.verdicts:
        yield from _gate(verdict, width)


def _gate(verdict: GateResult, width: int) -> Iterator[str]:
    word, said = verdict.outcome.upper(), verdict.sentence()
    name = f"{_MARGIN}{verdict.gate.text}"
    line = f"{name:<{len(_MARGIN) + width}}  {said}"
    if len(line) + 2 + len(word) <= WIDTH:
        yield line.ljust(WIDTH - len(word)) + word
        return
    if len(name) + 2 + len(word) <= WIDTH:
        yield name.ljust(WIDTH - len(word)) + word
    else:
        yield name
        said = f"{word}: {said}"
    indent = " " * len(_MARGIN)
    yield from textwrap.wrap(said, WIDTH, initial_indent=indent, subsequent_indent=indent)


def baseline_lines(report: BaselineReport) -> Iterator[str]:
    """What it is compared with, what differs, and what changed."""
    yield f"against the baseline {report.source}"
    for note in report.notes:
        yield from textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="  ")
    for comparison in report.comparisons:
        yield from changes.lines(against(comparison))


def saved_line(saved: Saved) -> str:
    """What was not run, in runs and in what they would have taken."""
    share = f"{saved.runs / saved.of:.0%}" if saved.of else "0%"
    about = []
    if saved.tokens is not None:
        about.append(f"{saved.tokens:,.0f} tokens")
    if saved.cost_usd is not None:
        about.append(f"${saved.cost_usd:.4f}")
    more = f", about {' and '.join(about)}" if about and saved.runs else ""
    return f"{saved.runs} of {saved.of} runs ({share}) did not have to be run{more}"
