"""What GitHub Actions shows by itself: the step summary, and annotations for rows that failed.

Text of the user's and of models stays within the one line of its command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..escaping import escape_control_chars
from ..run_result import RunResult
from ..suite_results import EvalResult, SuiteResult
from .formats import Sections
from .highlights import lowest_rows, row_name, unscored_rows, unscored_share
from .markdown import render

ANNOTATIONS = 10
"""As many as GitHub shows of one step."""
MESSAGE_LIMIT = 1_000


def append_summary(result: EvalResult, path: Path, sections: Sections | None = None) -> None:
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
        rows += [(row, unscored_share(row)) for row in unscored_rows(suite)]
        for row, found in rows[:ANNOTATIONS]:
            title = f"{row_name(row)}: {found}"
            first = next(run for run in row.runs if not run.passed)
            message = "\n".join(_lines_of(first))
            yield _command(level, title, message, suite, row_index=row.row_index)


def _lines_of(run: RunResult) -> Iterator[str]:
    if run.error is not None:
        yield run.error
    if run.scores:
        yield ", ".join(f"{name} {score:g}" for name, score in run.scores.items())
    yield from (f"{name}: {said}" for name, said in run.reasons.items())
    if run.error is None and run.answer:
        yield run.answer


def _command(
    level: str, title: str, message: str, suite: SuiteResult, *, row_index: int | None = None
) -> str:
    text = escape_control_chars(message)[:MESSAGE_LIMIT] or title
    properties = {"title": escape_control_chars(title)}
    if file := _in_workspace(suite.info.data):
        properties["file"] = file
        if row_index is not None and (line := _line_of(row_index, Path(suite.info.data))):
            properties["line"] = str(line)
    words = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{level} {words}::{_escaped(text)}"


def _line_of(row_index: int, path: Path) -> int | None:
    """Return the line of a row, where a line is a row: that of the n-th that is not blank."""
    if path.suffix.lower() != ".jsonl":
        return None
    try:
        with path.open("rb") as file:
            rows = (number for number, line in enumerate(file, 1) if line.strip())
            return next(islice(rows, row_index, None), None)
    except OSError:  # it is gone by now: the annotation is of the file
        return None


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
