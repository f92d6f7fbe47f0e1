"""Settings of servers and clients that projects give by variables: `OSMOSIS_ROLLOUT_*`.

`get_settings` reads them once a process, `configure` replaces them. Each field says its variable,
its default and its range; a value outside is a ValueError that names both. Knows nothing of what
the settings are used for.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

__all__ = [
    "RolloutClientSettings",
    "RolloutServerSettings",
    "RolloutSettings",
    "configure",
    "get_settings",
    "reset_settings",
]

CLIENT, SERVER = "OSMOSIS_ROLLOUT_CLIENT_", "OSMOSIS_ROLLOUT_SERVER_"


def _setting(variable: str, default: float, least: float, most: float) -> Any:
    """Return a field of the type of `default`, taken from `variable` where that is set."""
    return field(
        default_factory=partial(_from_environment, variable, default),
        metadata={"least": least, "most": most, "kind": type(default)},
    )


def _from_environment(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    try:
        return type(default)(text)
    except ValueError:
        what = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{variable} must be {what}, not {text!r}") from None


def _check_ranges(settings: Any) -> None:
    """Raise ValueError for the first number that is out of its range."""
    for setting in fields(settings):
        if not setting.metadata:
            continue
        value, kind = getattr(settings, setting.name), setting.metadata["kind"]
        least, most = setting.metadata["least"], setting.metadata["most"]
        number = isinstance(value, int if kind is int else int | float)
        fits = number and not isinstance(value, bool) and math.isfinite(value)
        if not (fits and least <= value <= most):
            raise ValueError(f"{setting.name} must be from {least:g} to {most:g}, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutClientSettings:
    """Calls to a trainer: `OSMOSIS_ROLLOUT_CLIENT_*`."""

    timeout_seconds: float = _setting(f"{CLIENT}TIMEOUT_SECONDS", 300.0, 1.0, 3600.0)
    """How long the trainer may take to answer one request."""
    max_retries: int = _setting(f"{CLIENT}MAX_RETRIES", 3, 0, 10)
    """Further tries of a model call after 5xx, timeouts and broken connections."""
    complete_rollout_retries: int = _setting(f"{CLIENT}COMPLETE_ROLLOUT_RETRIES", 2, 0, 10)
    """The same for the callback with a result."""
    retry_base_delay: float = _setting(f"{CLIENT}RETRY_BASE_DELAY", 1.0, 0.1, 60.0)
    """Longest pause before the second try, in seconds; doubles with every further one."""
    retry_max_delay: float = _setting(f"{CLIENT}RETRY_MAX_DELAY", 30.0, 1.0, 300.0)
    """Longest pause of all."""
    max_connections: int = _setting(f"{CLIENT}MAX_CONNECTIONS", 100, 1, 1000)
    """Connections to a trainer at once."""
    max_keepalive_connections: int = _setting(f"{CLIENT}MAX_KEEPALIVE_CONNECTIONS", 20, 1, 100)
    """Read and checked; idle connections are closed by their age instead."""

    def __post_init__(self) -> None:
        _check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutServerSettings:
    """The RolloutServer: `OSMOSIS_ROLLOUT_SERVER_*`."""

    max_concurrent_rollouts: int = _setting(f"{SERVER}MAX_CONCURRENT_ROLLOUTS", 100, 1, 10_000)
    """Rollouts that run at once; as many again may wait."""
    record_ttl_seconds: float = _setting(f"{SERVER}RECORD_TTL_SECONDS", 3600.0, 60.0, 86_400.0)
    """How long the record of an ended rollout is kept."""
    cleanup_interval_seconds: float = _setting(
        f"{SERVER}CLEANUP_INTERVAL_SECONDS", 60.0, 10.0, 3600.0
    )
    """Read and checked; old records are looked for every few seconds."""
    request_timeout_seconds: float = _setting(
        f"{SERVER}REQUEST_TIMEOUT_SECONDS", 600.0, 10.0, 3600.0
    )
    """Read and checked; `ServerSettings` has a limit for each part of a request."""
    registration_readiness_timeout_seconds: float = _setting(
        f"{SERVER}REGISTRATION_READINESS_TIMEOUT_SECONDS", 10.0, 1.0, 60.0
    )
    """How long the server may take to answer its own health check before it is registered."""
    registration_readiness_poll_interval_seconds: float = _setting(
        f"{SERVER}REGISTRATION_READINESS_POLL_INTERVAL_SECONDS", 0.2, 0.05, 5.0
    )
    """The pause between two health checks."""
    registration_shutdown_timeout_seconds: float = _setting(
        f"{SERVER}REGISTRATION_SHUTDOWN_TIMEOUT_SECONDS", 30.0, 1.0, 300.0
    )
    """Read and checked; a shutdown ends a registration that is under way."""

    def __post_init__(self) -> None:
        _check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """All settings of the rollout side: `OSMOSIS_ROLLOUT_*`."""

    client: RolloutClientSettings = field(default_factory=RolloutClientSettings)
    server: RolloutServerSettings = field(default_factory=RolloutServerSettings)
    max_metadata_size_bytes: int = _setting(
        "OSMOSIS_ROLLOUT_MAX_METADATA_SIZE_BYTES", 1024 * 1024, 1024, 100 * 1024 * 1024
    )
    """The most that a request's metadata may take as JSON."""

    def __post_init__(self) -> None:
        _check_ranges(self)


class _Current:
    """The settings of this process."""

    settings: RolloutSettings | None = None


def get_settings() -> RolloutSettings:
    """Return the settings of this process; the first call reads the variables."""
    if _Current.settings is None:
        _Current.settings = RolloutSettings()
    return _Current.settings


def configure(settings: RolloutSettings) -> None:
    """Make these the settings of this process."""
    if not isinstance(settings, RolloutSettings):
        raise TypeError(f"configure needs a RolloutSettings, not {type(settings).__name__}")
    _Current.settings = settings


def reset_settings() -> None:
    """Have the next `get_settings` read the variables again."""
    _Current.settings = None
