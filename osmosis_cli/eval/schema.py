"""`osmosis eval schema`: the JSON Schema of the JSON report."""

from __future__ import annotations

import json

import click

EPILOG = """\b
Example:
  osmosis eval schema > report.schema.json
"""


@click.command("schema", epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="No difference: the schema is JSON.")
def schema_command(as_json: bool) -> None:
    """Print the JSON Schema of the report that --output writes."""
    from pytest_osmosis.reports.json_writer import schema

    click.echo(json.dumps(schema(), indent=None if as_json else 2))
