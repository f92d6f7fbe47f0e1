"""The configuration of a RolloutServer: limits, deadlines, allowed trainers, and its application.

Plain values and their checks; reads the environment, knows no route.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from ..agents.base import RolloutAgentLoop
from ..rollout_settings import RolloutClientSettings, RolloutSettings, get_settings
from ..secret import Secret, check_api_key

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TRAINERS_VARIABLE = "OSMOSIS_ALLOWED_TRAINERS"
"""Origins of trainers, separated by commas or blanks."""
KEY_VARIABLE = "OSMOSIS_SERVER_API_KEY"
"""The server's key, where `create_app` is given none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Limits and rules of a server; every number is positive."""

    max_concurrent: int = 100
    """Rollouts that run at once; as many again may wait, more are answered with 429."""
    record_ttl_s: float = 3600.0
    """How long the record of an ended rollout is kept, and its callback retried."""
    rollout_timeout_s: float = 3600.0
    """The longest that one rollout may take."""
    cancel_grace_s: float = 5.0
    """How long a cancelled agent may clean up before it is abandoned."""
    drain_s: float = 10.0
    """How long a shutdown waits for rollouts to end."""
    flush_s: float = 10.0
    """How long a shutdown tries to deliver the last results."""
    max_body_bytes: int = 16 * 1024 * 1024
    """The largest body of an init."""
    max_held_bytes: int = 256 * 1024 * 1024
    """Bodies that are being read, or wait to run, and results that are kept: each at most this."""
    body_timeout_s: float = 30.0
    """How long a body may take to arrive as a whole."""
    request_timeout_s: float = 300.0
    """How long the trainer may take to answer one request."""
    connections: int = 100
    """Connections to a trainer at once."""
    allowed_trainers: tuple[str, ...] = ()
    """Origins that may be called, whatever their address; empty: any public address."""
    local: bool = False
    """Whether any address may be called: loopback, private and link-local ones too."""
    ready_s: float = 10.0
    """How long the server may take to answer its own health check before it is registered."""
    ready_pause_s: float = 0.2
    """The pause between two of these health checks."""
    client: RolloutClientSettings = field(default_factory=RolloutClientSettings)
    """How often and after which pauses calls to the trainer are repeated."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            if type(setting.default) in (int, float):
                _check_number(
                    setting.name, getattr(self, setting.name), whole=type(setting.default) is int
                )
        if isinstance(self.allowed_trainers, str):
            raise TypeError(f"allowed_trainers must be a tuple, not {self.allowed_trainers!r}")
        if self.allowed_trainers:
            from .trainer.address_policy import (
                check_origin,  # brings asyncio, which making an app does not need
            )

            for origin in self.allowed_trainers:
                check_origin(origin)


def _check_number(name: str, value: Any, *, whole: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise TypeError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be more than 0, not {value!r}")


Hook = Callable[[], Any]
"""Called without arguments; an awaitable that it returns is awaited."""


class PlatformLogin(Protocol):
    """The identity of the server at the platform."""

    @property
    def platform_url(self) -> str:
        """The platform's address."""

    @property
    def token(self) -> Secret:
        """The bearer token of the login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """The checked arguments of `create_app`."""

    agent: RolloutAgentLoop
    settings: ServerSettings
    api_key: Secret | None = None
    """None: only requests to loopback addresses are answered, and need no key."""
    debug_dir: Path | None = None
    login: PlatformLogin | None = None
    host: str | None = None
    port: int | None = None
    on_startup: Hook | None = None
    on_shutdown: Hook | None = None


def settings_from(
    environ: Mapping[str, str] | None = None, rollout: RolloutSettings | None = None
) -> ServerSettings:
    """Return `rollout`, or the process's settings, with the environment's trainers."""
    environ = os.environ if environ is None else environ
    rollout = get_settings() if rollout is None else rollout
    return replace(of_rollout(rollout), allowed_trainers=trainers_from(environ))


def of_rollout(rollout: RolloutSettings) -> ServerSettings:
    """Return the settings of a server and its client as those of a server."""
    server, client = rollout.server, rollout.client
    return ServerSettings(
        max_concurrent=server.max_concurrent_rollouts,
        record_ttl_s=server.record_ttl_seconds,
        request_timeout_s=client.timeout_seconds,
        connections=client.max_connections,
        ready_s=server.registration_readiness_timeout_seconds,
        ready_pause_s=server.registration_readiness_poll_interval_seconds,
        client=client,
    )


def key_from(given: str | Secret | None) -> Secret | None:
    """Return the key that an application is given, else that of the environment, if any."""
    if isinstance(given, Secret):
        return given
    if given is not None:
        return check_api_key(given, "api_key")
    exported = os.environ.get(KEY_VARIABLE)
    return None if exported is None else check_api_key(exported, KEY_VARIABLE)


def trainers_from(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the origins in `OSMOSIS_ALLOWED_TRAINERS`."""
    return tuple(environ.get(TRAINERS_VARIABLE, "").replace(",", " ").split())
