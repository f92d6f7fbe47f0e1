"""`osmosis eval compare`: what changed from one report to others, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from pytest_osmosis.reports.text_table import columns, wrapped

from ..errors import CommandError
from ..shared_options import NumberRange, json_option, print_json
from .lines import say
from .report import read, same_suites

if TYPE_CHECKING:
    from pytest_osmosis.features.comparison.section import BaselineReport
    from pytest_osmosis.suite_results import EvalResult, SuiteResult

EPILOG = """\b
Examples:
  osmosis eval compare before.json after.json
  osmosis eval compare baseline.json small.json large.json --json
"""


@dataclass(frozen=True, slots=True)
class ComparedSuite:
    """One evaluation in two reports."""

    baseline: SuiteResult
    current: SuiteResult
    report: BaselineReport


confidence_option = click.option(
    "--confidence",
    type=NumberRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    metavar="C",
    help="Of the intervals (default: 0.95).",
)


@click.command("compare", epilog=EPILOG)
@click.argument(
    "reports", nargs=-1, required=True, metavar="A.json B.json...", type=click.Path(path_type=Path)
)
@confidence_option
@click.option(
    "-v", "--verbose", is_flag=True, help="List every row that differs, not only what is shown."
)
@json_option
def compare_command(
    reports: tuple[Path, ...], confidence: float, verbose: bool, as_json: bool
) -> None:
    """Compare reports with the first one, row by row: the same rows, paired."""
    if len(reports) < 2:
        raise click.UsageError("two reports or more are needed: the first is the baseline")
    baseline = read(reports[0])
    results = [(path, read(path)) for path in reports[1:]]
    compared = [
        (path, *_compare(baseline, result, (reports[0], path), confidence))
        for path, result in results
    ]
    if as_json:
        print_json(_document(reports[0], compared))
        return
    for number, (path, pairs, alone) in enumerate(compared):
        if number:
            say("")
        for line in _lines(reports[0], path, pairs, alone, verbose=verbose):
            say(line)


def _compare(
    baseline: EvalResult, current: EvalResult, paths: tuple[Path, Path], confidence: float
) -> tuple[list[ComparedSuite], list[str]]:
    from pytest_osmosis.features.comparison.baseline import compare_suites

    pairs, alone = same_suites(baseline, current)
    if not pairs:
        raise CommandError(
            f"{paths[0]} and {paths[1]} have no evaluation in common: {', '.join(alone)}",
            code="nothing_in_common",
            status=2,
        )
    found = [
        ComparedSuite(
            there,
            here,
            compare_suites(here, there, str(paths[0]), confidence=confidence),
        )
        for there, here in pairs
    ]
    _refuse_strangers(found, paths)
    return found, alone


def _refuse_strangers(found: list[ComparedSuite], paths: tuple[Path, Path]) -> None:
    """Refuse reports of which not one row or eval function is in both."""
    if any(comparison.rows for pair in found for comparison in pair.report.comparisons):
        return
    pairs = [(pair.baseline.info.eval_fns, pair.current.info.eval_fns) for pair in found]
    shared = any(set(there) & set(here) for there, here in pairs)
    named = " and ".join(", ".join(each) or "none" for each in pairs[0])
    why = "no row is in both" if shared else f"they have other eval functions ({named})"
    raise CommandError(
        f"{paths[0]} and {paths[1]} have nothing in common: {why}",
        code="nothing_in_common",
        status=2,
    )


def _lines(
    baseline: Path,
    current: Path,
    pairs: list[ComparedSuite],
    alone: list[str],
    *,
    verbose: bool,
) -> Iterator[str]:
    from pytest_osmosis.features.comparison.section import changes
    from pytest_osmosis.reports.summary import COLUMNS

    width = columns() or COLUMNS
    found = [(pair, each) for pair in pairs for each in pair.report.comparisons]
    for pair, comparison in found:
        of = [pair.current.info.name] * (len(pairs) > 1) + [comparison.eval_fn] * (len(found) > 1)
        yield from wrapped(" ".join([*of, comparison.in_short]), width)
    yield ""
    for what, path, suite in (
        ("baseline", baseline, pairs[0].baseline),
        ("current", current, pairs[0].current),
    ):
        about = f"({suite.info.model}, {suite.finished} runs, {suite.info.passing})"
        yield from wrapped(f"{what:<8}  {path}  {about}", columns())
    for pair in pairs:
        if len(pairs) > 1 or alone:
            yield from ["", pair.current.info.name]
        for note in pair.report.notes:
            yield from wrap(f"note: {note}", width, subsequent_indent="  ")
        for comparison in pair.report.comparisons:
            yield ""
            yield from changes(comparison, width=width, verbose=verbose)
    if alone:
        yield from ["", f"not compared, in one report only: {', '.join(alone)}"]


def _document(
    baseline: Path, compared: list[tuple[Path, list[ComparedSuite], list[str]]]
) -> dict[str, Any]:
    return {
        "baseline": str(baseline),
        "comparisons": [
            {
                "report": str(path),
                "not_compared": alone,
                "suites": [
                    {
                        "name": pair.current.info.name,
                        "notes": list(pair.report.notes),
                        "eval_fns": [
                            {**asdict(each), "rule": each.rule} for each in pair.report.comparisons
                        ],
                    }
                    for pair in pairs
                ],
            }
            for path, pairs, alone in compared
        ],
    }
