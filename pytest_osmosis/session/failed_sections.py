"""How the terminal shows runs that did not pass: one section a row, ten at most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from .. import compat
from ..escaping import counted
from ..items.protocol import OBSERVED
from ..reports.line_markup import hanging, sentence
from ..run_result import ROLLOUT, RunResult
from .screen import Screen

SECTIONS_SHOWN = 10
"""Sections of a session; with `-vv` all are shown."""
QUIET_LINES = 6
"""Lines of a message with `-q`: the first, how many are left out, and the last two."""
_KEPT_SHORT = re.compile(r"  (?:user|ground truth|answer|reason|row)  ")
_LABELLED = re.compile(r"  (?:[a-z]+ )?[a-z]+  ")
_BELOW = " " * 13
"""Before the further lines of a message."""
_BLOCK = re.compile(r"  (?:[a-z]+ [a-z]+|[a-z]+)  |  \(|  \d")


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that did not pass and belong together: of one row, or with one error."""

    report: Any
    """That of the first run."""
    runs: Sequence[RunResult]
    of: int
    """Runs of the row that have ended; 0 for runs with one error."""

    @property
    def others(self) -> str:
        """What there is besides the first run, in brackets; "" where there is nothing."""
        if self.of > 1:
            return f" ({len(self.runs)} of {self.of} runs failed)"
        more = max(0, len(self.runs) - 1)
        return f" (the same in {counted(more, 'more run')})" if more and not self.of else ""


class FailedSections:
    """Writes the sections of groups of runs to the terminal."""

    def __init__(self, terminal: Any, where: Callable[[str], str]) -> None:
        """`terminal` is pytest's reporter; `where` says where a suite's runs are."""
        self._terminal = terminal
        self._config = terminal.config
        self._where = where
        self._screen = Screen(terminal)

    def show(self, groups: Mapping[str, Sequence[Group]], titles: Mapping[str, str]) -> None:
        """Show them in the order of `titles`: ten sections in all, unless `-vv` asks for more.

        Half of what is left is kept for those that come after.
        """
        runs = {status: sum(bool(group.runs) for group in groups[status]) for status in titles}
        after = sum(runs.values())
        left = SECTIONS_SHOWN if self._config.get_verbosity() <= 1 else after
        for status, title in titles.items():
            after -= runs[status]
            limit = min(runs[status], max(left // 2, left - after))
            if groups[status]:
                self._show_status(title, groups[status], limit)
            left -= limit

    def _show_status(self, title: str, groups: Sequence[Group], limit: int) -> None:
        screen = self._screen
        screen.title(title)
        if self._config.option.tbstyle == "line":
            screen.lines(
                f"{_place(group.report)}: {_message(group.report)}{group.others}"
                for group in groups
            )
            return
        of_runs = [group for group in groups if group.runs]
        for group in of_runs[:limit]:
            self._section(group)
        if left := [run for group in of_runs[limit:] for run in group.runs]:
            rows = counted(len({(run.suite, run.row_index) for run in left}), "more row")
            screen.lines(["", f"{rows}: {self._where(left[0].suite)}"])
        for group in groups:
            if not group.runs:  # a gate
                self._section(group)

    def _section(self, group: Group) -> None:
        screen, report = self._screen, group.report
        screen.title(f"{_name(report)}{group.others}", "_", red=True, bold=True)
        if isinstance(report.longrepr, str) or compat.is_failure_section(report.longrepr):
            lines = str(report.longrepr).rstrip().splitlines()
            if not group.runs:  # a gate's sentences
                lines = [part for line in lines for part in sentence(line, screen.width)]
            show_section(self._shortened(lines, group), screen)
        else:  # a test function's own traceback
            report.longrepr.toterminal(self._config.get_terminal_writer())
        for text in (text for title, text in report.sections if title == ROLLOUT):
            show_section(self._shortened(["", *text.splitlines()], group), screen)
        for title, text in self._captured(report):
            screen.title(title, "-")
            screen.lines(part for line in text.rstrip("\n").split("\n")
                         for part in hanging(line, screen.width))  # fmt: skip

    def _shortened(self, lines: Iterable[str], group: Group) -> Iterable[str]:
        """Return what `--tb=short` and `-q` leave of a section."""
        if group.runs and self._config.option.tbstyle == "short":
            lines = _without_steps(lines)
        is_quiet = self._config.get_verbosity() < 0
        return _without_middles(lines, self._screen.width) if is_quiet else lines

    def _captured(self, report: pytest.TestReport) -> Iterator[tuple[str, str]]:
        """Yield what the run printed and logged, as far as `--show-capture` wants it."""
        wanted = self._config.option.showcapture
        seen = [section for section in report.sections if section[0] != ROLLOUT]
        for other in compat.reports_by_status(self._terminal).get("", ()):
            if getattr(other, "when", None) == "teardown" and other.nodeid == report.nodeid:
                seen += [section for section in other.sections if section not in seen]
        if wanted != "no":
            yield from (each for each in seen if wanted == "all" or wanted in each[0])


def show_section(lines: Iterable[str], screen: Screen) -> None:
    """Write the section of a run: what went wrong in red, the conversation below it."""
    is_headline = True
    for line in lines:
        is_headline = is_headline and bool(line.strip())
        screen.lines(hanging(line, screen.width), style="bad" if is_headline else None)


def _without_steps(lines: Iterable[str]) -> list[str]:
    """What went wrong, the question, the last answer, and what was expected: `--tb=short`."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _BLOCK.match(line):
            blocks.append([])
        blocks[-1].append(line)
    said = [block for block in blocks[1:] if block[0].startswith("  assistant  ")]
    kept = [block for block in blocks[1:] if _KEPT_SHORT.match(block[0]) or block in said[-1:]]
    return [line for block in (blocks[0], *kept) for line in block]


def _without_middles(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines, broken at the width; of a long message the first ones and the last."""
    messages: list[list[str]] = [[]]
    for line in lines:
        if not line.startswith(_BELOW):
            messages.append([])
        messages[-1] += hanging(line, width)
    for shown in messages:
        if len(shown) > QUIET_LINES and _LABELLED.match(shown[0]):
            left_out = counted(len(shown) - QUIET_LINES + 1, "line")
            shown[QUIET_LINES - 3 : -2] = [f"{_BELOW}[{left_out} left out]"]
        yield from shown


def _name(report: pytest.TestReport) -> str:
    return report.head_line or str(report.nodeid)


def _place(report: Any) -> str:
    """The node id of an item; of a row, `data.jsonl:3: row-1[run-0]`, which editors know."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if compat.is_failure_section(report.longrepr) and crash is not None and crash.lineno:
        return f"{crash.path}:{crash.lineno}: {report.location[2]}"
    return str(report.nodeid)


def _message(report: Any) -> str:
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", None) or report.longrepr).partition("\n")[0]


def short(group: Group) -> Any:
    """The report of a group for the short summary: its message says how many runs it stands for."""
    report = group.report
    if not group.others:
        return report
    line = f"{group.others.strip(' ()')}: {_message(report)}"
    named = pytest.TestReport(
        nodeid=report.nodeid,
        location=report.location,
        keywords={},
        outcome=report.outcome,
        longrepr=compat.failure_section(lambda: line, path=report.location[0], line=line),
        when=report.when,
    )
    if hasattr(report, OBSERVED):
        setattr(named, OBSERVED, getattr(report, OBSERVED))
    return named
