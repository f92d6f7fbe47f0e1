"""The HTML report: one page that needs nothing beside it, to be filtered and read.

`page.html` beside this module is its template; everything put into it is escaped. Works without
scripts, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..escaping import escape_control_chars
from ..results import EvalResult, RowResult, RunResult, SuiteResult
from ..storage.atomic_write import write_whole
from .formats import Sections
from .highlights import run_name
from .view import section_of, view_of

RUNS_SHOWN = 2_000
"""Runs of one suite on the page, those that did not pass first."""
SECTIONS_SHOWN = 300
"""Runs of one suite whose conversations are on the page."""
TEXT_LIMIT = 500
_ORDER = {"error": 0, "failed": 1, "passed": 2}


@dataclass(frozen=True, slots=True)
class Shown:
    """One run on the page."""

    name: str
    outcome: str
    scores: Sequence[str]
    reasons: Sequence[str]
    seconds: str
    tokens: str
    text: str
    section: str


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a suite on the page."""

    functions: Sequence[str]
    shown: Sequence[Shown]
    left_out: int


def render(result: EvalResult, sections: Sections | None = None) -> str:
    """The page."""
    import jinja2  # not worth its import where no page is asked for

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    view = view_of(result, sections)
    suites = [
        (shown, _runs(suite, sections or {}))
        for shown, suite in zip(view.suites, result.suites, strict=True)
    ]
    return environment.get_template("page.html").render(view=view, suites=suites)


def write(result: EvalResult, path: Path, sections: Sections | None = None) -> None:
    """Write the page; OSError when it cannot be written, the old file then untouched."""
    write_whole(path, render(result, sections).encode("utf-8", "backslashreplace"))


def _runs(suite: SuiteResult, sections: Sections) -> Runs:
    every = [(row, run) for row in suite.rows for run in row.runs]
    worst_first = sorted(every, key=lambda pair: _ORDER[pair[1].outcome])[:RUNS_SHOWN]
    names = [function.name for function in suite.functions]
    return Runs(names, list(_shown(worst_first, suite, sections)), len(every) - len(worst_first))


def _shown(
    runs: Sequence[tuple[RowResult, RunResult]], suite: SuiteResult, sections: Sections
) -> Iterator[Shown]:
    room = SECTIONS_SHOWN
    for row, run in runs:
        section = ""
        if not run.passed and run.run_id in sections and room:
            section, room = escape_control_chars(section_of(run, suite, sections)), room - 1
        text = escape_control_chars(run.error or run.answer or "")
        yield Shown(
            name=run_name(row, run, n=suite.info.n),
            outcome=run.outcome,
            scores=[_score(run, function.name) for function in suite.functions],
            reasons=[_reason(run, name, suite) for name in run.reasons],
            seconds=f"{run.duration_ms / 1000:.2f}",
            tokens="" if run.tokens is None else f"{run.tokens:,}",
            text=_cut(text),
            section=section,
        )


def _reason(run: RunResult, name: str, suite: SuiteResult) -> str:
    """Why the run scored that, under the function's name where there are several."""
    said = run.reasons[name] if len(suite.functions) == 1 else f"{name}: {run.reasons[name]}"
    return _cut(escape_control_chars(said))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + " …"


def _score(run: RunResult, name: str) -> str:
    score = run.scores.get(name)
    return "–" if score is None else f"{score:g}"
