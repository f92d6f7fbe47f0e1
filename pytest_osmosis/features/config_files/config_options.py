"""The config file of a submitted evaluation, as options of an evaluation on this machine.

`osmosis eval CONFIG` and `pytest CONFIG` read it here. Knows neither pytest nor a command line, and
changes no environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osmosis_ai.platform import workspace
from osmosis_ai.platform.config_file import ConfigError, load_config
from osmosis_ai.platform.config_models import EvalConfig

from ...dataset.formats import SUFFIXES, SUFFIXES_SHOWN
from ...errors import ConfigurationError
from ...escaping import escape_control_chars

FOLDER = EvalConfig.run.folder
_FOLDERS = (workspace.DATASETS, workspace.DATASETS_OF_03)
EVALUATION = {
    "limit": "limit",
    "n": "n",
    "batch_size": "batch-size",
    "pass_threshold": "pass-threshold",
    "agent_workflow_timeout_s": "agent-timeout",
    "grader_timeout_s": "grader-timeout",
    "map": "map",
    "where": "where",
    "prompt_template": "prompt-template",
    "cluster": "cluster",
}
"""Which option a key of [evaluation] is the default of."""


@dataclass(frozen=True, slots=True)
class ConfigRun:
    """What a config file says of an evaluation on this machine."""

    root: Path
    """The workspace."""
    rollout: Path
    """The folder of the rollout."""
    options: Mapping[str, str | list[str]]
    """Values of options, by their names."""
    dataset: str
    """The name of the dataset on the platform."""
    env: Mapping[str, str] = field(repr=False)
    secrets: Sequence[str]
    """The names in [secrets]."""
    model_keys: Sequence[str]
    """Those of them that are keys of the file's model: another model does not need them."""

    def options_beside(self, given: Sequence[str]) -> dict[str, str | list[str]]:
        """Return the values of options that are not given, without a limit where rows are named."""
        names_rows = "rows" in given or "sample" in given
        return {
            name: value
            for name, value in self.options.items()
            if name not in given and not (name == "limit" and names_rows)
        }

    def needed_secrets(self, *, another_model: bool) -> list[str]:
        """Return the secrets without which it cannot run."""
        return [name for name in self.secrets if not (another_model and name in self.model_keys)]

    def dataset_file(self, *, option: str) -> str:
        """Return the dataset's file in the workspace; `option` is what names another one."""
        found = dataset_files(self.root, self.dataset)
        if len(found) == 1:
            return os.path.relpath(found[0])
        there = "no file" if not found else "more than one file"
        raise ConfigurationError(
            f"there is {there} of the dataset {escape_control_chars(repr(self.dataset))} in "
            f"{'/ or '.join(_FOLDERS)}/ ({SUFFIXES_SHOWN}); name one with "
            f"{option}=FILE"
        )


def read_config_run(path: Path) -> ConfigRun:
    """Return what a config file says, in the workspace around the current directory.

    Raises:
        ConfigurationError: with every problem of the file.
    """
    try:
        config = load_config(EvalConfig, path).config
    except ConfigError as error:
        raise ConfigurationError(str(error)) from None
    root = workspace.find_root(Path.cwd())
    experiment = config.experiment
    entrypoint = workspace.find_entrypoint(root, experiment.rollout, experiment.entrypoint)
    given = config.evaluation.given() if config.evaluation else {}
    options: dict[str, str | list[str]] = {
        "agent": os.path.relpath(entrypoint),
        "model": experiment.model_path,
    }
    options |= {name: _value(given[key], root) for key, name in EVALUATION.items() if key in given}
    return ConfigRun(
        root=root,
        rollout=root / workspace.ROLLOUTS / experiment.rollout,
        options=options,
        dataset=experiment.dataset,
        env=config.env or {},
        secrets=config.secrets.required,
        model_keys=_model_keys(experiment.model_path),
    )


def _value(value: object, root: Path) -> str | list[str]:
    """Return the value of an option; a file behind an @ is one of the workspace."""
    if isinstance(value, list):
        return value
    text = str(value)
    return f"@{root / text[1:]}" if text.startswith("@") else text


def dataset_files(root: Path, name: str) -> list[Path]:
    """Return the files of a dataset in a workspace; one is right."""
    for folder in _FOLDERS:
        files = (root / folder / f"{name}{suffix}" for suffix in SUFFIXES)
        if found := [file for file in files if file.exists()]:
            return found
    return []


def _model_keys(model: str) -> tuple[str, ...]:
    from osmosis_ai.providers import key_variables, parse_model_name

    try:
        return key_variables(parse_model_name(model).provider)
    except ValueError:  # no provider's name: none of the secrets is known to be its key
        return ()
