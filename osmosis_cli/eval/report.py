"""`osmosis eval report`: a saved JSON report as the summary, HTML, Markdown or a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from pytest_osmosis.features.table import REPORTS
from pytest_osmosis.reports.formats import format_named
from pytest_osmosis.reports.text_table import columns

from ..errors import CommandError, command_errors, usage_errors
from ..shared_options import json_option, print_json
from .lines import say

if TYPE_CHECKING:
    from pytest_osmosis.reports.saved_report import SavedReport
    from pytest_osmosis.suite_results import EvalResult, SuiteResult


EPILOG = """\b
Examples:
  osmosis eval report results.json
  osmosis eval report results.json --html report.html --csv runs.csv
  osmosis eval report results.json --markdown - >> "$GITHUB_STEP_SUMMARY"
"""
_READ = "output"
"""The report that is read; all others can be made of it."""
_STDOUT = Path("-")
_FILE = click.Path(path_type=Path, dir_okay=False)


def _option(form: str) -> click.Option:
    """Return the option that asks for a form of a report."""
    report = format_named(form)
    ending = f", as .{form}" if report.suffixes else ""
    said = f"Write the {report.title} here{ending}."
    return click.Option([f"--{form}"], type=_FILE, metavar="FILE", help=said)


_FORMS = [_option(form) for each in REPORTS if each.option != _READ for form in each.forms]


@click.command("report", epilog=EPILOG, params=_FORMS)
@click.argument("report", metavar="RESULTS.json", type=click.Path(path_type=Path))
@json_option
def report_command(report: Path, as_json: bool, **files: Path | None) -> None:
    """Show a report that an evaluation has saved, or write it in other forms.

    Conversations come from the .trajectories.jsonl beside it, the columns of a table from the
    dataset, if that is there unchanged. Nothing is run, no model is asked. The FILE - is standard
    output.
    """
    from pytest_osmosis.reports.saved_report import read_saved

    with readable():
        saved = read_saved(report)
    asked = {name.replace("_", "-"): path for name, path in files.items() if path is not None}
    to_stdout = [form for form, path in asked.items() if path == _STDOUT]
    if len(to_stdout) + as_json > 1:
        raise click.UsageError(f"--{to_stdout[-1]} -: standard output takes one document")
    _check(asked, report, saved)
    notes: list[str] = []
    if any(format_named(form).needs_rows for form in asked):
        from pytest_osmosis.reports.saved_report import with_dataset

        result, notes = with_dataset(saved.result)
        saved = replace(saved, result=result)
    for form, path in asked.items():
        _write(form, path, saved)
    if as_json:
        written = list(map(str, asked.values()))
        print_json({"report": str(report), "written": written, "notes": notes})
        return
    for note in notes:
        say(note, err=True)
    if not asked:
        _show(saved)
    for form, path in asked.items():
        if path != _STDOUT:
            say(f"{format_named(form).title}: {path}", err=bool(to_stdout))


def _show(saved: SavedReport) -> None:
    from pytest_osmosis.reports.summary import COLUMNS, summary

    for line in summary(saved.result, kept=False, width=columns() or COLUMNS):
        say(line)


def _write(form: str, path: Path, saved: SavedReport) -> None:
    """Write the report in a form; to standard output by way of a temporary file."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / f"report.{form}" if path == _STDOUT else path
        try:
            write = format_named(form).writer(saved.conversations)
            write(saved.result, target, saved.sections)
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror or error}") from None
        if path == _STDOUT:
            click.echo(target.read_bytes(), nl=False)


def _check(asked: Mapping[str, Path], report: Path, saved: SavedReport) -> None:
    """Refuse to write over what is read or another form, and a table under another's ending."""
    from pytest_osmosis.errors import ConfigurationError
    from pytest_osmosis.reports.saved_conversations import beside
    from pytest_osmosis.storage.atomic_write import check_overwriting

    taken = {Path(suite.info.data): "is the dataset" for suite in saved.result.suites}
    taken[beside(report)] = "has its conversations"
    taken[report] = "is the report that is read"
    files = {f"--{form}": path for form, path in asked.items() if path != _STDOUT}
    with usage_errors(ConfigurationError):
        check_overwriting(files.items(), taken)
    for form, path in asked.items():
        if path != _STDOUT and format_named(form).suffixes and path.suffix.lower() != f".{form}":
            raise click.UsageError(f"--{form} {path}: name a file that ends in .{form}")


SCHEMA_EPILOG = """\b
Examples:
  osmosis eval schema > report.schema.json
  osmosis eval schema --config > eval-config.schema.json
"""


@click.command("schema", epilog=SCHEMA_EPILOG)
@click.option("--config", is_flag=True, help="That of a config file, for editors.")
@click.option("--json", "as_json", is_flag=True, help="No difference: the schema is JSON.")
def schema_command(config: bool, as_json: bool) -> None:
    """Print the JSON Schema of the report that --output writes, or of a config file."""
    if config:
        from osmosis_ai.platform.config_models import EvalConfig, json_schema

        schema = json_schema(EvalConfig)
    else:
        from pytest_osmosis.reports.json_models import schema as report_schema

        schema = report_schema()
    click.echo(json.dumps(schema, indent=None if as_json else 2))


def read(path: Path, where: str = "") -> EvalResult:
    """Return the result that a report tells of; `where` comes before what is wrong with it."""
    from pytest_osmosis.reports.json_reader import read_result

    with readable(where):
        return read_result(path)


def readable(where: str = "") -> AbstractContextManager[None]:
    """Make what is wrong with a report the command's error."""
    from pytest_osmosis.reports.json_reader import UnreadableReport

    return command_errors(UnreadableReport, code="invalid", where=where)


def same_suites(
    first: EvalResult, other: EvalResult
) -> tuple[list[tuple[SuiteResult, SuiteResult]], list[str]]:
    """Suites of two reports that belong together, and the names of those that are in one only."""
    from pytest_osmosis.features.comparison.baseline import counterparts

    found = counterparts([suite.info for suite in other.suites], first.suites)
    both = list(zip(found, other.suites, strict=True))
    pairs = [(there, here) for there, here in both if there is not None]
    taken = {id(each) for pair in pairs for each in pair}
    every = (*first.suites, *other.suites)
    return pairs, [suite.info.name for suite in every if id(suite) not in taken]
