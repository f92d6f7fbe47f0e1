"""A session in GitHub Actions: annotations at its end, and the Markdown report as step summary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...escaping import escape_control_chars
from ...reports.formats import Sections, no_sections
from ...reports.highlights import lowest_rows, row_name, unscored_rows, unscored_share
from ...reports.view import section_of
from ...session.seams import Feature
from ...suite_results import EvalResult, RowResult, SuiteResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import pytest

    from ...rollouts.suite import Suite

    _LineOf: TypeAlias = Callable[[SuiteResult, RowResult], int | None]

ANNOTATIONS = 10
"""As many as GitHub shows of one step."""
MESSAGE_LIMIT = 1_000


class GitHubFeature(Feature):
    """Tells GitHub what came of a session."""

    def __init__(self, config: pytest.Config, part: bool) -> None:
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        self._summary = Path(path) if path else None
        self.shows_environment = self._summary is not None
        self._problem: str | None = None
        self._suites: Mapping[str, Suite] = {}

    def check_rows(self, suites: Mapping[str, Suite]) -> None:
        """Keep the suites: they know the lines of their rows."""
        self._suites = suites

    def write(self, result: EvalResult, sections: Sections) -> Iterable[str]:
        """Append the report to the step summary; that this fails is no problem of the session."""
        from .report import render

        if self._summary is not None:
            try:
                with self._summary.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(render(result, sections) + "\n")
            except OSError as error:
                self._problem = error.strerror or str(error)
        return ()

    def lines(self, result: EvalResult) -> Iterator[str]:
        """Yield the annotations, and why the step summary could not be written."""
        yield from annotated(result, self._line)
        if self._problem is not None:
            yield f"warning: cannot write the step's summary: {self._problem}"

    def _line(self, suite: SuiteResult, row: RowResult) -> int | None:
        found = self._suites.get(suite.info.name)
        return None if found is None else found.dataset.line(row.row_index)


def annotated(result: EvalResult, line_of: _LineOf) -> list[str]:
    """Workflow commands: gates that were not passed, then the rows that passed least."""
    found = [*_of_gates(result), *_of_rows(result, line_of)]
    return found[:ANNOTATIONS]


def _of_gates(result: EvalResult) -> Iterator[str]:
    for suite in result.suites:
        for verdict in suite.verdicts:
            if verdict.outcome != "passed":
                level = "error" if verdict.outcome == "failed" else "warning"
                title = f"gate {verdict.outcome}: {verdict.gate}"
                yield _command(level, title, verdict.sentence(), suite)


def _of_rows(result: EvalResult, line_of: _LineOf) -> Iterator[str]:
    for suite in result.suites:
        level = "warning" if suite.verdicts else "error"
        rows = [(low.row, str(low)) for low in lowest_rows(suite)]
        rows += [(row, unscored_share(row, suite)) for row in unscored_rows(suite)]
        for row, found in rows[:ANNOTATIONS]:
            title = f"{row_name(row)}: {found}"
            first = next(run for run in row.runs if not run.passed)
            said = section_of(first, suite, no_sections)
            yield _command(level, title, said, suite, line_of(suite, row))


def _command(
    level: str, title: str, message: str, suite: SuiteResult, line: int | None = None
) -> str:
    text = escape_control_chars(message)[:MESSAGE_LIMIT] or title
    words = f"title={_escaped(escape_control_chars(title), ':,')}"
    if file := _in_workspace(suite.info.data):
        words += f",file={_escaped(file, ':,')}" + (f",line={line}" if line else "")
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
