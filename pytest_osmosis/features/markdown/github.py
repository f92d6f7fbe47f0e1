"""What a session tells GitHub Actions: annotations, and the step's summary.

The summary is the Markdown report.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...escaping import escape_control_chars
from ...reports.formats import Sections, no_sections
from ...reports.highlights import lowest_rows, row_name, unscored_rows, unscored_share
from ...reports.view import section_of
from ...suite_results import EvalResult, SuiteResult
from .report import render

ANNOTATIONS = 10
"""As many as GitHub shows of one step."""
MESSAGE_LIMIT = 1_000


def append_summary(result: EvalResult, path: Path, sections: Sections = no_sections) -> None:
    """Append the Markdown report to the step's summary; OSError when it cannot be."""
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(render(result, sections) + "\n")


def annotated(result: EvalResult) -> list[str]:
    """Workflow commands: gates that were not passed, then the rows that passed least."""
    found = [*_of_gates(result), *_of_rows(result)]
    return found[:ANNOTATIONS]


def _of_gates(result: EvalResult) -> Iterator[str]:
    for suite in result.suites:
        for verdict in suite.verdicts:
            if verdict.outcome != "passed":
                level = "error" if verdict.outcome == "failed" else "warning"
                title = f"gate {verdict.outcome}: {verdict.gate}"
                yield _command(level, title, verdict.sentence(), suite)


def _of_rows(result: EvalResult) -> Iterator[str]:
    for suite in result.suites:
        level = "warning" if suite.verdicts else "error"
        rows = [(low.row, str(low)) for low in lowest_rows(suite)]
        rows += [(row, unscored_share(row, suite)) for row in unscored_rows(suite)]
        for row, found in rows[:ANNOTATIONS]:
            title = f"{row_name(row)}: {found}"
            first = next(run for run in row.runs if not run.passed)
            yield _command(level, title, section_of(first, suite, no_sections), suite)


def _command(level: str, title: str, message: str, suite: SuiteResult) -> str:
    text = escape_control_chars(message)[:MESSAGE_LIMIT] or title
    words = f"title={_escaped(escape_control_chars(title), ':,')}"
    if file := _in_workspace(suite.info.data):
        words += f",file={_escaped(file, ':,')}"
    return f"::{level} {words}::{_escaped(text)}"


def _in_workspace(data: str) -> str | None:
    """The data file as GitHub names it."""
    try:
        return str(Path(data).relative_to(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()))
    except ValueError:
        return None


def _escaped(text: str, also: str = "") -> str:
    for char in "%\r\n" + also:
        text = text.replace(char, f"%{ord(char):02X}")
    return text
