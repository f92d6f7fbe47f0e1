"""The file of `--osmosis-env-file`: read before any conftest.py, undone after the session.

The ini key counts as found, not as named by the user: it sets no variable that decides where logins
and traffic go, or which code runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from osmosis_ai.platform import env_file

from ..options.table import BY_NAME

_LOADED = pytest.StashKey[str]()


def load(config: pytest.Config) -> None:
    """Add the file's variables to the environment; workers inherit them."""
    option = BY_NAME["env-file"]
    given = getattr(config.known_args_namespace, option.dest, None)
    path = _path(config, given, option.ini_name)
    if path is None:
        return
    try:
        loaded = env_file.load(env_file.read(path), os.environ, named=given is not None)
    except env_file.EnvFileError as error:
        spelled = option.flag_name if given is not None else option.ini_name
        raise pytest.UsageError(f"{spelled}: {error}") from None
    config.stash[_LOADED] = str(loaded)
    config.add_cleanup(lambda: _forget(loaded.names))


def header(config: pytest.Config) -> list[str]:
    """Return the line that says what the file sets, if there is one."""
    told = config.stash.get(_LOADED, "")
    return [f"osmosis: {told}"] if told else []


def _path(config: pytest.Config, given: str | None, ini_name: str) -> Path | None:
    if given is not None:
        return config.invocation_params.dir / Path(given).expanduser()
    text: str = config.getini(ini_name)
    return config.rootpath / Path(text).expanduser() if text else None


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        os.environ.pop(name, None)
