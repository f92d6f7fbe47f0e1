"""The Markdown report: verdicts, the table, what changed, then the worst rows, collapsed.

For GitHub's dialect. Text of the user's and of models goes through `escaped` or into a fence: it
cannot become markup. Within GitHub's limit for a step summary, whatever the result holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...escaping import counted, escape_control_chars
from ...reports.formats import Sections, no_sections
from ...reports.tables import Table
from ...reports.view import Bad, SuiteView, View, view_of
from ...storage.atomic_write import write_whole
from ...suite_results import EvalResult

SIZE_LIMIT = 900_000
"""Bytes; GitHub refuses a step summary of more than 1 MiB."""
NAMES_SHOWN = 20
ANSWER_SHOWN = 200
"""Characters of an answer beside a row that changed."""
_MARKS = {"passed": "✅", "failed": "❌", "unfinished": "❌", "inconclusive": "❔"}
_ACTIVE = re.compile(r"[\\`*_{}\[\]<>()#|!&~@$^\"']|:(?=//)|(?<=www)\.|:(?=\w+:)")


def render(result: EvalResult, sections: Sections = no_sections) -> str:
    """The report."""
    text = "\n".join(_lines(view_of(result, sections))) + "\n"
    if len(text.encode()) <= SIZE_LIMIT:
        return text
    return "\n".join(_lines(view_of(result), rows=False)) + "\n"


def write(result: EvalResult, path: Path, sections: Sections = no_sections) -> None:
    """Write the report; OSError when it cannot be written, the old file then untouched."""
    data = render(result, sections).encode("utf-8", "backslashreplace")
    write_whole(path, data, mode=result.private_mode)


def escaped(text: str) -> str:
    """Text on one line that shows as it is, wherever it stands."""
    flat = " ".join(escape_control_chars(text).split())
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", flat)


def code(text: str) -> str:
    """The same in the type of code; also within a table."""
    return f"<code>{escaped(text)}</code>"


def fenced(text: str) -> Iterator[str]:
    """Text over several lines as it is: the fence is longer than any within."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from escape_control_chars(text).split("\n")
    yield fence


def table(shown: Table) -> Iterator[str]:
    """A table, figures to the right."""
    yield "| " + " | ".join(escaped(cell) for cell in shown.header) + " |"
    yield "| --- |" + " ---: |" * (len(shown.header) - 1)
    for name, *figures in shown.rows:
        yield f"| {code(name)} | " + " | ".join(escaped(cell) for cell in figures) + " |"


def _lines(view: View, *, rows: bool = True) -> Iterator[str]:
    yield f"## {_MARKS[view.state]} Evaluation: {escaped(view.headline)}"
    yield from ["", *(f"- {escaped(remark)}" for remark in view.remarks)] if view.remarks else []
    for found in view.overviews:
        yield from ["", f"### {escaped(found.title[0].upper() + found.title[1:])}"]
        for each in (found.table, found.pairs):
            yield from ["", *table(each)] if each.rows else []
        yield from (line for note in found.notes for line in ("", escaped(note)))
    for suite in view.suites:
        yield ""
        yield from _suite(suite, titled=len(view.suites) > 1, rows=rows)
    if view.environment:
        yield from ["", "<details><summary>Environment</summary>", ""]
        for name, value in view.environment:
            yield f"- {name}: {code(value)}"
        yield from ["", "</details>"]


def _suite(suite: SuiteView, *, titled: bool, rows: bool) -> Iterator[str]:
    if titled:
        yield from [f"### {escaped(suite.name)}", ""]
    yield escaped(suite.subject)
    yield ""
    if suite.verdicts:
        yield from _verdicts(suite)
        yield ""
    if suite.table.rows:
        yield from table(suite.table)
        yield ""
    for each in suite.by:
        yield from [f"#### {escaped(each.title[0].upper() + each.title[1:])}", ""]
        yield from table(each.table)
        if each.left_out:
            yield from ["", f"and {counted(each.left_out, 'more value')}"]
        yield ""
    yield from (f"- {escaped(fact)}" for fact in suite.facts)
    for section in suite.sections.values():
        yield from section.markdown()
    if rows:
        yield from _worst(suite)


def _verdicts(suite: SuiteView) -> Iterator[str]:
    yield "| verdict | gate | found |"
    yield "| --- | --- | --- |"
    for outcome, gate, sentence in suite.verdicts:
        yield f"| {_MARKS[outcome]} {outcome} | {code(gate)} | {escaped(sentence)} |"


def _worst(suite: SuiteView) -> Iterator[str]:
    for title, rows, more, what in (
        ("Lowest rows", suite.lowest, suite.more_low, "that did not pass every time"),
        ("Rows without a score", suite.unscored, suite.more_unscored, "without a score"),
    ):
        if rows:
            yield from ["", f"#### {title}", ""]
        for bad in rows:
            yield from _bad(bad)
        if more:
            yield f"and {more} more {what}"


def _bad(bad: Bad) -> Iterator[str]:
    yield f"<details><summary>{code(bad.name)} {escaped(bad.found)}</summary>"
    yield ""
    for title, text in bad.runs:
        if len(bad.runs) > 1:
            yield from [code(title), ""]
        yield from fenced(text or "(nothing was recorded)")
        yield ""
    yield from ["</details>", ""]
