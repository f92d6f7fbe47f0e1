"""What a session needs of Ray, and a process's connection to a cluster, or to one of its own."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.options.values import UNNAMED_CLUSTER

EXTRA = "pip install 'pytest-osmosis[ray]'"
_NEEDED = ("ray", "cryptography")
_STORE_BYTES = 100 << 20
"""Of the object store of a cluster that is started here: no record goes through it."""
_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Where a cluster of this machine listens: Ray replaces 127.0.0.1 by an address of a network."""
_STARTED = "local"
"""Ray's word for a cluster that is started for the process."""
CONNECT_S = 10.0
_ON = ("1", "true")
# Ray speaks HTTP/2, where both begin with a frame of settings; an empty one will do.
_HTTP2_SETTINGS = b"\4"
_HTTP2_BEGINS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _HTTP2_SETTINGS + bytes(5)
_FRAME_HEAD, _FRAME_TYPE = 9, 3
_OURS = ("working_dir", "env_vars")


def missing() -> list[str]:
    """Return what of the extra is not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def check_installed() -> None:
    """Raise ConfigurationError where the extra is not installed."""
    if lacking := missing():
        raise ConfigurationError(f"--osmosis-ray needs {' and '.join(lacking)}: {EXTRA}")


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
    """There is none at the address."""


def connect(address: str, project: Path, runtime_env: Mapping[str, Any]) -> bool:
    """Connect this process to a cluster whose tasks run in a copy of the project.

    Return whether it was started. Raise NoCluster where there is none at the address.
    """
    import ray

    given: dict[str, Any] = {
        "runtime_env": {**runtime_env, "working_dir": str(project)},
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": False,
    }
    named = os.environ.get("RAY_ADDRESS") if address == UNNAMED_CLUSTER else address
    try:
        if named and named != _STARTED:
            _check_listening(named)
            ray.init(address=named, **given)
            return False
        # Never "auto": it finds the cluster that another session here has started for itself.
        ray.init(
            address=_STARTED,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _node_ip_address=_LOOPBACK,
            **given,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        raise NoCluster(str(error).strip().partition("\n")[0][:300]) from None
    return True


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
