"""Variables from a file, for one session: `--osmosis-env-file`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    import pytest

_OPTION = Option(
    "env-file",
    "read variables from this file of NAME=value lines (.env) where they are not set",
    metavar="FILE",
    is_path=True,
)


def _load(config: pytest.Config) -> Sequence[str]:
    given = getattr(config.known_args_namespace, _OPTION.dest, None)
    if given is None and not config.getini(_OPTION.ini_name):
        return ()
    from .feature import load

    return load(config, _OPTION, given)


ENV_FILE = FeatureEntry(
    "env_file", [OptionSet("the model", (_OPTION,), after="pass-env")], load=_load
)
