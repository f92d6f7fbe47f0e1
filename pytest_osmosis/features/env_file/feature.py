"""The file of `--osmosis-env-file`: read before any conftest.py, undone after the session.

The ini key counts as found, not as named by the user: it sets no variable that decides where logins
and traffic go, or which code runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from osmosis_ai.platform import env_file

from ...options.table import Option


def load(config: pytest.Config, option: Option, given: str | None) -> Sequence[str]:
    """Add the file's variables to the environment, which workers inherit; say what was set.

    `given` is the path of the command line, None where the ini file has it.
    """
    if given is not None:
        path = config.invocation_params.dir / Path(given).expanduser()
    else:
        path = config.rootpath / Path(config.getini(option.ini_name)).expanduser()
    try:
        loaded = env_file.load(env_file.read(path), os.environ, named=given is not None)
    except env_file.EnvFileError as error:
        spelled = option.flag_name if given is not None else option.ini_name
        raise pytest.UsageError(f"{spelled}: {error}") from None
    config.add_cleanup(lambda: _forget(loaded.names))
    text = str(loaded)
    return [f"osmosis: {text}"] if text else []


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        os.environ.pop(name, None)
