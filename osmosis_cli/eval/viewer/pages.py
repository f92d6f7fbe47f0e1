"""The pages of `osmosis eval view`: the list, one evaluation, two beside each other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_osmosis.analysis.planned_rows import ran
from pytest_osmosis.features.comparison.baseline import compare_suites
from pytest_osmosis.features.comparison.earlier_runs import Tools, calls
from pytest_osmosis.features.comparison.row_matching import match_rows
from pytest_osmosis.features.html import report as html
from pytest_osmosis.features.html.page_assets import Asset, style
from pytest_osmosis.features.labels.run_labels import Labels, UnreadableLabels, read_labels
from pytest_osmosis.reports.formats import Conversations
from pytest_osmosis.reports.highlights import figure_text
from pytest_osmosis.run_result import OWN_MODEL
from pytest_osmosis.suite_results import EvalResult, SuiteResult

from ..lines import when_text
from ..report import same_suites
from .library import Library, Viewed, ViewEntry

_SEARCH = Asset((Path(__file__).parent / "search.js").read_text("utf-8"))
WIDTH, HEIGHT = 120, 28
"""Of a trend, in units of its drawing."""


class NothingInCommon(Exception):
    """Two reports have no evaluation in common."""


@dataclass(frozen=True, slots=True)
class Family:
    """Everything that is there of one evaluation, and how its pass@1 went."""

    name: str
    entries: Sequence[ViewEntry]
    """The newest first."""
    points: Sequence[tuple[float, float]]
    """A trend, the oldest first: places in a drawing."""
    scale: tuple[str, str]
    """The figures at the bottom and at the top of the drawing."""
    trend: str
    """It in words."""


def families(entries: Sequence[ViewEntry]) -> list[Family]:
    """Return the entries by what they are of, that of the newest first."""
    names = dict.fromkeys(entry.family for entry in entries)
    return [_family(name, [each for each in entries if each.family == name]) for name in names]


def _family(name: str, entries: Sequence[ViewEntry]) -> Family:
    scored = [each for each in reversed(entries) if each.pass_at_1 is not None]
    known = [
        each.pass_at_1
        for each in scored
        if each.pass_at_1 is not None and _scored_by(each) == _scored_by(scored[-1])
    ]
    low, high = min([*known, 0.0]), max([*known, 1.0])
    step = WIDTH / max(1, len(known) - 1)
    points = [
        (round(step * place, 1), round(HEIGHT - 3 - (HEIGHT - 6) * (value - low) / (high - low), 1))
        for place, value in enumerate(known)
    ]
    scale = f"{low:g}", f"{high:g}"
    return Family(name, entries, points, scale, ", ".join(map(figure_text, known)))


def _scored_by(entry: ViewEntry) -> tuple[str | None, float | None]:
    """What its pass@1 is of: one of something else is of no trend with it."""
    return entry.run.eval_fn, entry.run.pass_threshold


def index_page(library: Library, place: Path, base: str, words: str = "") -> str:
    """Return the list of what there is and has these words; `base`: how every address begins."""
    from markupsafe import Markup

    environment = html.templates(Path(__file__).parent)
    environment.filters["figure"] = figure_text
    environment.filters["when"] = when_text
    every = library.entries()
    labels = {each.key: _labels(each) for each in every}
    entries = [each for each in every if _has(each, labels[each.key], words.lower().split())]
    found = families(entries)
    return environment.get_template("index.html").render(
        families=found,
        labels=labels,
        words=words,
        there=len(every),
        own_model=OWN_MODEL,
        chosen=[each.key for each in _chosen(entries)],
        place=str(place),
        base=base,
        style=Markup(style().text),
        style_source=Markup(style().source),
        script=Markup(_SEARCH.text),
        script_source=Markup(_SEARCH.source),
        words_of=lambda entry: _words(entry, labels[entry.key]),
    )


def _chosen(entries: Sequence[ViewEntry]) -> list[ViewEntry]:
    """Return what is compared at first: the newest finished entry, and that before it of its kind.

    `entries`: the newest first. Where there are no two that are finished, these are any two.
    """
    for known in ([each for each in entries if each.is_finished], entries):
        for place, current in enumerate(known):
            for earlier in known[place + 1 :]:
                if earlier.family == current.family:
                    return [earlier, current]
    return list(entries[1::-1])


def _labels(entry: ViewEntry) -> Labels:
    try:
        return read_labels(entry.places)
    except UnreadableLabels as error:
        return Labels(note=str(error))


def _has(entry: ViewEntry, labels: Labels, words: Sequence[str]) -> bool:
    return all(word in _words(entry, labels) for word in words)


def _words(entry: ViewEntry, labels: Labels) -> str:
    """Return what the list is searched by."""
    run = entry.run
    shown = [*entry.names, run.model, run.data, run.verdict, run.state, run.agent, entry.family]
    return " ".join([*shown, entry.source, labels.note, *labels.tags]).lower()


def entry_page(entry: ViewEntry, viewed: Viewed, base: str) -> str:
    """Return the page of an evaluation; it changes while a session works on it."""
    served = html.Served(
        conversations=f"{base}/conversations/{entry.key}",
        labels=f"{base}/labels/{entry.key}",
        events=f"{base}/events/{entry.key}" if entry.is_live else "",
        home=f"{base}/",
    )
    return html.render(viewed.result, served=served)


def comparison_page(library: Library, before: ViewEntry, after: ViewEntry, base: str) -> str:
    """Return the page of one evaluation with another as its baseline."""
    earlier, here = library.view(before), library.view(after).result
    served = html.Served(
        conversations=f"{base}/conversations/{after.key}",
        labels=f"{base}/labels/{after.key}",
        home=f"{base}/",
        sides=_sides(before, after),
    )
    return html.render(
        beside(earlier.result, here, before.run.name, earlier.conversations), served=served
    )


def _sides(before: ViewEntry, after: ViewEntry) -> tuple[str, str]:
    """Return what people call both.

    By when they began, where they are of one evaluation: to the second, where minutes are alike.
    """
    if before.title != after.title:
        return before.title, after.title
    begun = before.run.started_at, after.run.started_at
    then, now = map(when_text, begun)
    if then == now:
        then, now = (when_text(at, seconds=True) for at in begun)
    return then, f"{after.title}: {now}"


def beside(
    there: EvalResult, here: EvalResult, source: str, said: Conversations = lambda run: None
) -> EvalResult:
    """Return a result with another one as its baseline, of whose runs `said` has what was said."""
    pairs, _ = same_suites(there, here)
    if not pairs:
        raise NothingInCommon
    return replace(here, suites=tuple(_against(now, then, source, said) for then, now in pairs))


def _against(now: SuiteResult, then: SuiteResult, source: str, said: Conversations) -> SuiteResult:
    def tools_of(rows: Collection[int]) -> Tools:
        runs = (run for run in then.runs if run.row_index in rows)
        records = {(run.row_index, run.run_index): said(run.run_id) for run in runs}
        return {at: calls(record.messages) for at, record in records.items() if record}

    paired = tuple(
        replace(then.rows[there], row_index=now.rows[here].row_index)
        for here, there in match_rows(ran(now), ran(then)).pairs
    )
    report = compare_suites(now, then, source, tools_of=tools_of)
    sections = {**now.sections, "baseline": report}
    return replace(now, sections=sections, companion=replace(then, rows=paired))
