"""`osmosis eval schema`: what the JSON report's fields are."""

from __future__ import annotations

import json

from click.testing import CliRunner

from osmosis_cli.main import cli


def test_it_prints_the_schema_with_the_contracted_core():
    done = CliRunner().invoke(cli, ["eval", "schema"])
    assert done.exit_code == 0
    schema = json.loads(done.stdout)
    assert {"config", "summary", "rows"} <= set(schema["required"])
    assert {"row_index", "runs"} <= set(schema["$defs"]["Row"]["required"])
    assert {"mean", "std", "min", "max"} <= set(schema["$defs"]["EvalFnSummary"]["required"])
    assert {"schema_version", "environment", "gates"} <= set(schema["properties"])
    assert json.loads(CliRunner().invoke(cli, ["eval", "schema", "--json"]).stdout) == schema
