"""What a session needs of Ray, and a process's connection to a cluster, perhaps its own."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.options.values import UNNAMED_ADDRESS

EXTRA = "pip install 'pytest-osmosis[ray]'"
_NEEDED = ("ray", "cryptography")
_STORE_BYTES = 100 << 20
"""Of the object store of a cluster that is started here: no record goes through it."""
_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Where a cluster of this machine listens: Ray replaces 127.0.0.1 by an address of a network."""
_STARTED = "local"
"""Ray's word for a cluster that is started for the process."""
_LONGEST_PLACE = 18
"""Characters: Ray adds up to 64, the name of the folder has 20, and macOS takes 103 for a socket,
Linux 107."""
CONNECT_S = 10.0
_ON = ("1", "true")
# Ray speaks HTTP/2, where both begin with a frame of settings; an empty one will do.
_HTTP2_SETTINGS = b"\4"
_HTTP2_BEGINS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _HTTP2_SETTINGS + bytes(5)
_FRAME_HEAD, _FRAME_TYPE = 9, 3
_OURS = ("working_dir", "env_vars")
_REFUSALS = (RuntimeError, ValueError, OSError)
"""What Ray raises where it has no cluster."""


def missing() -> list[str]:
    """Return what of the extra is not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def read_runtime_env(path: Path | None) -> dict[str, Any]:
    """Return the environment that a file describes, without what the evaluation itself sets.

    Raises:
        ConfigurationError: when it describes none.
    """
    if path is None:
        return {}
    option = f"--osmosis-ray-runtime-env {str(path)!r}"
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{option}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationError(f"{option}: expected YAML or JSON") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{option}: expected names with values, such as pip: [numpy]")
    for name in _OURS:
        if name in found:
            instead = "name variables with --osmosis-ray-env" if name == "env_vars" else "leave it"
            raise ConfigurationError(f"{option}: {name} is set by the evaluation; {instead} out")
    return found


class NoCluster(Exception):
    """There is none at the address, or none can be started; a sentence."""


def connect(address: str, project: Path, runtime_env: Mapping[str, Any]) -> Path | None:
    """Connect this process to a cluster whose tasks run in a copy of the project.

    Return the folder of a cluster that was started, to be removed after its end; None for another.
    Raise NoCluster where there is none at the address, or none can be started.
    """
    import ray

    given: dict[str, Any] = {
        "runtime_env": {**runtime_env, "working_dir": str(project)},
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": False,
    }
    named = os.environ.get("RAY_ADDRESS") if address == UNNAMED_ADDRESS else address
    if not named or named == _STARTED:
        return _start(given)
    try:
        _check_listening(named)
        ray.init(address=named, **given)
    except _REFUSALS as error:
        raise NoCluster(
            f"no cluster can be used: {_reason(error)}; give the address that `ray start` has "
            "shown, and export RAY_AUTH_MODE=token where it asks for a token"
        ) from None
    return None


def _start(given: Mapping[str, Any]) -> Path:
    """Start a cluster; return its folder."""
    import ray

    folder: str | None = None
    try:
        folder = tempfile.mkdtemp(prefix="osmosis-ray-", dir=_place())
        # Never "auto": it finds the cluster that another session here has started for itself.
        ray.init(
            address=_STARTED,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _node_ip_address=_LOOPBACK,
            _temp_dir=folder,
            **given,
        )
    except _REFUSALS as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise NoCluster(f"no cluster can be started here: {_reason(error)}") from None
    return Path(folder)


def _place() -> str:
    """Return where the folder of a cluster is made: Ray's sockets in it need short paths."""
    if chosen := os.environ.get("RAY_TMPDIR"):
        return os.path.abspath(chosen)
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _LONGEST_PLACE else "/tmp"


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _check_listening(address: str) -> None:
    """Raise OSError where no Ray listens at HOST:PORT: Ray would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT_S) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() not in _ON:
            connection.sendall(_HTTP2_BEGINS)
            with connection.makefile("rb") as answer:
                if answer.read(_FRAME_HEAD)[_FRAME_TYPE:][:1] != _HTTP2_SETTINGS:
                    raise ConnectionError("what listens there is no Ray")
