"""`osmosis eval report`: a saved JSON report as the summary, HTML, Markdown or a table."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..errors import CommandError

EPILOG = """\b
Examples:
  osmosis eval report results.json
  osmosis eval report results.json --html report.html --csv runs.csv
"""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("report", epilog=EPILOG)
@click.argument("report", metavar="RESULTS.json", type=click.Path(path_type=Path))
@click.option("--html", type=_FILE, metavar="FILE", help="Write the HTML report here, one page.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the Markdown report here.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write all runs here as a CSV table.")
@click.option("--parquet", type=_FILE, metavar="FILE", help="Write all runs here as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def report_command(report: Path, as_json: bool, **files: Path | None) -> None:
    """Show a report that an evaluation has saved, or write it in other forms.

    Conversations come from the .trajectories.jsonl beside it. Nothing is run, no model is asked.
    """
    from pytest_osmosis.escaping import escape_control_chars
    from pytest_osmosis.reports.formats import write_as
    from pytest_osmosis.reports.json_reader import UnreadableReport
    from pytest_osmosis.reports.saved_report import read_saved
    from pytest_osmosis.reports.terminal import summary

    try:
        saved = read_saved(report)
    except UnreadableReport as error:
        raise CommandError(str(error), code="invalid") from None
    asked = {form: path for form, path in files.items() if path is not None}
    for form, path in asked.items():
        _check(form, path, report)
    for form, path in asked.items():
        try:
            write_as(form, saved.result, path, saved.sections)
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror or error}") from None
    if as_json:
        click.echo(json.dumps({"report": str(report), "written": list(map(str, asked.values()))}))
        return
    for line in [] if asked else summary(saved.result, kept=False):
        click.echo(escape_control_chars(line))
    for path in asked.values():
        click.echo(f"report: {path}")


def _check(form: str, path: Path, report: Path) -> None:
    """Refuse to write over the report itself, and a table under another form's ending."""
    if path.resolve() == report.resolve():
        raise click.UsageError(f"--{form} {path}: this is the report that is read")
    if form in ("csv", "parquet") and path.suffix.lower() != f".{form}":
        raise click.UsageError(f"--{form} {path}: name a file that ends in .{form}")
