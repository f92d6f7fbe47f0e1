"""`pytest configs/eval/my-rollout.toml`: a config file among the arguments is an evaluation.

Its values become options, unless options are given, and its dataset takes its place among the
arguments. The environment must hold what it names: a session changes none. A file that pytest comes
across in a folder is nothing to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

from osmosis_ai.secret_variables import SECRET_NAMES

from ...errors import ConfigurationError
from ...options.reader import OptionReader
from ...options.table import BY_NAME
from ...spec import CONFIG_ENV
from .config_options import FOLDER, ConfigRun, read_config_run

TRAINING_FOLDER = "configs/training"


def apply(config: pytest.Config) -> None:
    """Replace a config file among the arguments by options; UsageError where it cannot run."""
    found = [text for text in config.args if _is_config(config, text, FOLDER)]
    for text in config.args:
        if _is_config(config, text, TRAINING_FOLDER):
            raise pytest.UsageError(f"{text} is of a training run; name one of {FOLDER}/")
    if not found:
        return
    if len({text.partition("::")[0] for text in found}) > 1:
        shown = ", ".join(found)
        raise pytest.UsageError(f"one config file at a time can be evaluated, not {shown}")
    name = found[0].partition("::")[0]
    given = OptionReader(config)
    for option in ("agent", *given.naming()):
        if given.on_command_line(option):
            raise pytest.UsageError(
                f"{name} and {given.spelled(option)} both say what is evaluated: give one of them"
            )
    try:
        run = read_config_run(config.invocation_params.dir / name)
        _set_options(config, given, run)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None
    _check_environment(name, run, given)
    _add_names(config, SECRET_NAMES, run.secrets)  # masked, whatever their names
    _add_names(config, CONFIG_ENV, run.env)
    config.args[:] = list(_replaced(config, found))


def _is_config(config: pytest.Config, text: str, folder: str) -> bool:
    name = text.partition("::")[0]
    if not name.endswith(".toml"):
        return False
    path = config.invocation_params.dir / name
    return path.is_file() and path.resolve().parent.as_posix().endswith(f"/{folder}")


def _set_options(config: pytest.Config, given: OptionReader, run: ConfigRun) -> None:
    on_command_line = [name for name in BY_NAME if given.on_command_line(name)]
    for name, value in run.options_beside(on_command_line).items():
        option = BY_NAME[name]
        setattr(
            config.option,
            option.dest,
            [value] if option.repeatable and isinstance(value, str) else value,
        )
    if "data" not in on_command_line:
        file = run.dataset_file(option=BY_NAME["data"].flag_name)
        setattr(config.option, BY_NAME["data"].dest, [file])


def _check_environment(name: str, run: ConfigRun, given: OptionReader) -> None:
    another_model = given("model") != (run.options["model"],)
    secrets = [
        each for each in run.needed_secrets(another_model=another_model) if not os.environ.get(each)
    ]
    env = [each for each, value in run.env.items() if os.environ.get(each) != value]
    told = [
        *([f"secrets are not set in the environment: {', '.join(secrets)}"] if secrets else []),
        *([f"variables do not have the values of [env]: {', '.join(env)}"] if env else []),
    ]
    if told:
        instead = f", or run `osmosis eval {name}`, which sets [env]" if env else ""
        raise pytest.UsageError(f"{name}: {'; '.join(told)}; export them{instead}")


def _add_names(config: pytest.Config, variable: str, names: Iterable[str]) -> None:
    """Add names to those in a variable, for this session."""
    before = os.environ.get(variable)
    os.environ[variable] = " ".join([*(before or "").split(), *names])
    config.add_cleanup(lambda: _restore(variable, before))


def _restore(variable: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = before


def _replaced(config: pytest.Config, found: list[str]) -> Iterator[str]:
    data: list[str] = getattr(config.option, BY_NAME["data"].dest)
    for text in config.args:
        if text in found:
            _, separator, item = text.partition("::")
            yield from (f"{file}{separator}{item}" for file in data)
        else:
            yield text
