"""`osmosis eval schema`: the JSON Schema of the JSON report, or of config files."""

from __future__ import annotations

import json

import click

EPILOG = """\b
Examples:
  osmosis eval schema > report.schema.json
  osmosis eval schema --config > eval-config.schema.json
"""


@click.command("schema", epilog=EPILOG)
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
