"""`osmosis eval check` and `osmosis train check`: config files, checked without a network.

One command for each kind of config file; `osmosis train schema` prints the JSON Schema of one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import CommandError
from ..eval.lines import say, tell
from ..shared_options import json_option, print_json

if TYPE_CHECKING:
    from osmosis_ai.platform.config_file import ConfigError, ConfigFile
    from osmosis_ai.platform.config_models import RunConfig


def _check_command(kind: RunKind) -> click.Command:
    """The `check` command of a kind; its model is imported when it runs."""

    @click.command(
        "check",
        epilog=f"\b\nExample:\n  osmosis {kind.group} check {kind.folder}/my-rollout.toml",
        help=f"Check the config files of {kind.noun}s, without a network.\n\n"
        "Prints every problem of every file, with its line. Checks the place of a file in the "
        "workspace, its rollout and its entrypoint too; runs and sends nothing. "
        "Status 1: a file cannot be used.",
    )
    @click.argument(
        "paths",
        metavar="CONFIG...",
        nargs=-1,
        required=True,
        type=click.Path(path_type=Path),
    )
    @json_option
    def command(paths: tuple[Path, ...], as_json: bool) -> None:
        _check(kind, paths, as_json=as_json)

    return command


def _check(kind: RunKind, paths: tuple[Path, ...], *, as_json: bool) -> None:
    from osmosis_ai.platform.config_file import ConfigError, load_config
    from osmosis_ai.platform.config_models import CONFIGS

    files: list[ConfigFile[RunConfig]] = []
    errors: list[ConfigError] = []
    for path in paths:
        try:
            files.append(load_config(CONFIGS[kind], path))
        except ConfigError as error:
            errors.append(error)
    if errors:
        raise unusable(errors)
    if as_json:
        print_json({"files": [_document(file) for file in files]})
        return
    for file in files:
        experiment = file.config.experiment
        say(
            f"{file.path}: valid "
            f"({experiment.rollout}, {experiment.model_path} on {experiment.dataset})"
        )
        for warning in file.warnings:
            tell(f"  warning: {warning}")


def unusable(errors: Sequence[ConfigError]) -> CommandError:
    """Return the failure that tells every problem of every file."""
    files = [
        {"path": str(error.path), "valid": False, "problems": list(map(_problem, error.problems))}
        for error in errors
    ]
    text = "\n".join(map(str, errors))
    return CommandError(text, code="invalid_config", details={"files": files})


def _document(file: ConfigFile[RunConfig]) -> dict[str, Any]:
    warnings = list(map(_problem, file.warnings))
    return {"path": str(file.path), "valid": True, "warnings": warnings}


def _problem(problem: Any) -> dict[str, Any]:
    return {"line": problem.line, "key": problem.key or None, "message": problem.message}


eval_check_command, train_check_command = map(_check_command, (EVALUATION, TRAINING))


@click.command("schema", epilog="\b\nExample:\n  osmosis train schema > training.schema.json\n")
@click.option("--json", "as_json", is_flag=True, help="No difference: the schema is JSON.")
def train_schema_command(as_json: bool) -> None:
    """Print the JSON Schema of the config file of a training run, for editors."""
    from osmosis_ai.platform.config_models import TrainingConfig, json_schema

    click.echo(json.dumps(json_schema(TrainingConfig), indent=None if as_json else 2))
