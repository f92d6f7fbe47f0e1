"""What the shards of a session are given: the arguments of their pytest sessions, and variables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from osmosis_ai.secret_variables import SECRET_NAMES, secret_variables

from ...options.reader import OptionReader
from ...options.table import OPTIONS
from ...spec import SessionSpec
from .fleet import ShardOrder

KEY_VARIABLE = "OSMOSIS_SHARD_API_KEY"
"""Where a key given as an option travels."""
_NOT_THEIRS = (
    "api-key", "env-file", "only", "rows", "run", "ray", "shards", "ray-cpus", "ray-env",
    "ray-runtime-env",
)  # fmt: skip
"""Options that shards do not need, or have otherwise."""
LARGE_BYTES = 64 << 20
"""A larger data file outside of the project must be on all machines."""
_DATA = ".osmosis-data"
_SETTINGS = ("OSMOSIS_ROLLOUT_", "LITELLM_")
_ADDRESSES = ("_BASE_URL", "_API_BASE", "_API_VERSION")
_LOGIN = "OSMOSIS_TOKEN"


def order_of(config: pytest.Config, spec: SessionSpec, files: Iterable[Path]) -> ShardOrder:
    """Return the order of a session; `files` of the project are needed by its evaluations."""
    root, started = config.rootpath, config.invocation_params.dir
    data = [_place(each.data, root, number) for number, each in enumerate(spec.evals)]
    given = zip(data, spec.evals, strict=True)
    environment = _environment(spec)
    secret = {each.name for each in (*secret_variables(), *spec.key_variables)} | {KEY_VARIABLE}
    return ShardOrder(
        words=list(_words(config, spec)),
        environment=environment,
        secrets=sorted(secret.intersection(environment)),
        root=root,
        folder=str(started.relative_to(root)) if started.is_relative_to(root) else ".",
        files={
            **{str(each.relative_to(root)): each for each in files if each.is_relative_to(root)},
            **{place: each.data for place, each in given if not os.path.isabs(place)},
        },
        data=data,
        silence_s=spec.worker_timeout_s,
    )


def _place(data: Path, root: Path, number: int) -> str:
    """Return the place of a data file in the copy; of a large one elsewhere its own path."""
    if data.is_relative_to(root):
        return str(data.relative_to(root))
    if data.stat().st_size > LARGE_BYTES:
        return str(data)
    return f"{_DATA}/{number}/{data.name}"


def _words(config: pytest.Config, spec: SessionSpec) -> Iterator[str]:
    yield from ("-p", "osmosis", "-p", "no:cacheprovider", "--osmosis-only", "--osmosis-run=always")
    yield from _of_pytest(config)
    given = OptionReader(config)
    for option in OPTIONS:
        if option.name in _NOT_THEIRS or not given.on_command_line(option.name):
            continue
        value = getattr(config.option, option.dest)
        if option.flag:
            yield option.flag_name
        else:
            for each in value if option.repeatable else [value]:
                yield f"{option.flag_name}={each}"
    if spec.defaults is not None and spec.defaults.rows is not None:
        yield f"--osmosis-rows={spec.defaults.rows}"
    if given.on_command_line("api-key"):
        yield f"--osmosis-api-key-env={KEY_VARIABLE}"


def _of_pytest(config: pytest.Config) -> Iterator[str]:
    """Yield the options of pytest that decide what is loaded, and how it is logged."""
    option = config.option
    for plugin in getattr(option, "plugins", None) or ():
        if plugin != "osmosis":
            yield from ("-p", plugin)
    for setting in getattr(option, "override_ini", None) or ():
        yield from ("-o", setting)
    for warning in getattr(option, "pythonwarnings", None) or ():
        yield from ("-W", warning)
    for name, word in {"importmode": "--import-mode", "log_level": "--log-level"}.items():
        if value := getattr(option, name, None):
            yield f"{word}={value}"
    file = getattr(option, "inifilename", None)
    if file:
        yield f"--config-file={file}"


def _environment(spec: SessionSpec, own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of shards: keys, addresses of providers, settings, and those named."""
    named = spec.cluster.variables if spec.cluster is not None else ()
    wanted = {*named, *own.get(SECRET_NAMES, "").split(), SECRET_NAMES}
    wanted |= {secret.name for secret in spec.key_variables}
    wanted |= {each.name for each in secret_variables() if each.name.endswith("_API_KEY")}
    wanted |= {name for name in own if name.startswith(_SETTINGS) or name.endswith(_ADDRESSES)}
    wanted.discard(_LOGIN)
    found = {name: own[name] for name in sorted(wanted) if name in own}
    model = spec.defaults.model if spec.defaults is not None else None
    if model is not None and model.api_key is not None:
        found[KEY_VARIABLE] = model.api_key.reveal()
    return found
