"""The HTML report: one page that needs nothing beside it, to be filtered, sorted and read.

`page/` has its template, style and script. What is in the summary can be read without scripts;
rows, runs and conversations are compressed in the page. It loads nothing, everything put into it is
escaped, and its policy lets nothing run but its own script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from ...escaping import dollars, escape_control_chars, percent
from ...outcomes import OUTCOMES, Outcome
from ...reports.facts import mixed_rows
from ...reports.formats import Conversations, Sections, no_sections
from ...reports.highlights import figure_text, outcome_counts
from ...reports.tables import ColumnTable, span, written
from ...reports.view import SuiteView, View, view_of
from ...run_result import without_module
from ...storage.atomic_write import write_whole
from ...suite_results import EvalResult, Figure, SuiteResult
from ...verdicts import EvalVerdict
from .charts import Charts, charts_of
from .page_assets import FEATURES, FOLDER, script, style
from .page_data import Packed, columns_of, compressed, packed, places_json, suites_json, value_text

if TYPE_CHECKING:
    import jinja2

PAGE_SIZE = 14_500_000
"""Characters that a page has at most, unless the runs alone need more."""
_WORST_FIRST: Sequence[Outcome] = [*OUTCOMES][::-1]


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure to read first."""

    title: str
    value: str
    below: str


@dataclass(frozen=True, slots=True)
class SuitePart:
    """A suite on the page."""

    view: SuiteView
    headlines: Sequence[Headline]
    outcomes: Sequence[tuple[str, int, float, float]]
    """Outcome, runs, and from where to how far it goes, in a bar of 100."""
    mixed: str
    """How many rows are mixed; "" where none is."""
    charts: Sequence[Charts]
    by: Sequence[tuple[ColumnTable, Sequence[str | None]]]
    """Figures by a column, and by what text the page chooses the rows of each value, if it can."""
    questions: Mapping[int, str]
    """By row index."""


@dataclass(frozen=True, slots=True)
class _Island:
    """What the script of the page reads."""

    runs: str
    said: Packed


@dataclass(frozen=True, slots=True)
class Served:
    """What a server adds to a page."""

    conversations: str
    """The address that conversations are read from: a suite, a row and a run are added."""
    events: str = ""
    """The address of the events that say that the page has changed; "" where it does not."""
    home: str = ""
    """The address of the list that the page is in."""
    labels: str = ""
    """The address of what people say of its runs."""
    sides: tuple[str, str] | None = None
    """The names of both, what is compared last, on the page of a comparison."""


def write(
    result: EvalResult,
    path: Path,
    sections: Sections = no_sections,
    conversations: Conversations | None = None,
) -> None:
    """Write the page; OSError when it cannot be written, the old file then untouched.

    A page with conversations can be read by its owner alone.
    """
    island = _island(result, conversations, sections)
    data = _page(result, island).encode("utf-8", "backslashreplace")
    write_whole(path, data, mode=0o600 if island.said.parts else result.private_mode)


def render(
    result: EvalResult,
    sections: Sections = no_sections,
    conversations: Conversations | None = None,
    *,
    served: Served | None = None,
) -> str:
    """Return the page."""
    return _page(result, _island(result, conversations, sections), served)


def _island(result: EvalResult, conversations: Conversations | None, sections: Sections) -> _Island:
    """Return what the script reads; conversations of runs that did not pass come first."""
    runs = compressed(suites_json(result))
    if conversations is None:
        return _Island(runs, Packed(0))
    every = sorted(result.runs, key=lambda run: _WORST_FIRST.index(run.outcome))
    room = PAGE_SIZE - len(runs) - 16 * len(every)
    return _Island(runs, packed(every, conversations, sections, room=max(0, room)))


def templates(*folders: Path) -> jinja2.Environment:
    """Return the templates of these folders, which escape all that is put into them."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = escape_control_chars
    return environment


def _page(result: EvalResult, island: _Island, served: Served | None = None) -> str:
    from markupsafe import Markup  # not worth its import where no page is asked for

    view = view_of(result)
    return (
        templates(FOLDER, FEATURES)
        .get_template("page.html")
        .render(
            view=view,
            title=_title(view, served),
            suites=[_part(*each) for each in zip(view.suites, result.suites, strict=True)],
            served=served,
            left_out=island.said.left_out,
            style=Markup(style().text),
            style_source=Markup(style().source),
            script=Markup(script().text),
            script_source=Markup(script().source),
            runs=Markup(island.runs),
            places=Markup(compressed(places_json(result, island.said.places))),
            conversations=Markup("\n".join(island.said.parts)),
        )
    )


def _title(view: View, served: Served | None) -> tuple[EvalVerdict, str, str]:
    """Return state, badge and heading of the page."""
    if served is not None and served.sides is not None:
        found = [
            short
            for suite in view.suites
            for section in suite.sections.values()
            for short in section.in_short()
        ]
        words = dict.fromkeys(each.partition(":")[0] for each in found)
        states: dict[str, EvalVerdict] = {"worse": "failed", "better": "passed"}
        word = next((each for each in states if each in words), next(iter(words), "nothing shared"))
        heading = f"{served.sides[1]} against {served.sides[0]}"
        return states.get(word, "inconclusive"), word, heading
    if served is not None and served.events:
        return "inconclusive", "running", view.headline
    return view.state, view.state, view.headline


def _part(view: SuiteView, suite: SuiteResult) -> SuitePart:
    return SuitePart(
        view=view,
        headlines=list(_headlines(suite)),
        outcomes=list(_outcomes(suite)),
        mixed=mixed_rows(suite) if suite.mixed_rows else "",
        charts=charts_of(suite),
        by=[(each, _choices(each, suite)) for each in view.by],
        questions={row.row_index: row.data.user_prompt for row in suite.rows if row.data},
    )


def _choices(table: ColumnTable, suite: SuiteResult) -> list[str | None]:
    column = table.column
    has_column = column in columns_of(suite)
    cells = [row.data.columns.get(column) for row in suite.rows if row.data and has_column]
    texts = {written(cell): value_text(cell) for cell in cells}
    return [texts.get(value) for value in table.values]


def _headlines(suite: SuiteResult) -> Iterator[Headline]:
    """Yield the figures that are read first: each eval function's, then what was used."""
    ends = Counter(without_module(function.name) for function in suite.functions)
    for function in suite.functions:
        for metric in ("pass@1", "mean"):
            figure = function.figures.get(metric)
            if figure is not None and figure.value is not None:
                end = without_module(function.name)
                name = end if ends[end] == 1 else function.name
                yield Headline(f"{metric} {name}", figure_text(figure.value), _around(figure))
                break
    used, before = suite.used, suite.repeated
    if used.tokens is not None:
        each = used.tokens / max(1, used.runs - used.unknown_tokens)
        yield Headline("tokens", f"{used.tokens:,}", f"{each:,.0f} a run")
    if used.cost_usd is not None:
        more = f"and {dollars(before.cost_usd)} of repeated runs" if before.cost_usd else ""
        yield Headline("cost", dollars(used.cost_usd), more or "as far as it is known")
    if times := [run.duration_ms for run in suite.runs if run.duration_ms]:
        most = f"longest {max(times) / 1000:.2f} s"
        yield Headline("median run", f"{median(times) / 1000:.2f} s", most)


def _around(figure: Figure) -> str:
    if figure.interval is None:
        return ""
    return f"{span(figure.interval)} ({percent(figure.interval.confidence)})"


def _outcomes(suite: SuiteResult) -> Iterator[tuple[str, int, float, float]]:
    counts = outcome_counts(suite)
    start = 0.0
    for outcome, runs in counts:
        width = 100.0 * runs / sum(each for _, each in counts)
        yield outcome, runs, round(start, 3), round(width, 3)
        start += width
