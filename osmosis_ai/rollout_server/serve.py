"""`serve_agent_loop`: an agent loop behind HTTP from a program of one's own, until a signal.

`osmosis serve` does more: it finds the login, reloads, and logs in its own form.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ..agents.base import RolloutAgentLoop
from ..agents.validation import validate_and_report
from ..platform.address import is_loopback
from ..rollout_settings import RolloutSettings
from ..secret import Secret, check_api_key
from .api_key import generate_api_key
from .app import create_app
from .settings import KEY_VARIABLE, PlatformLogin, ServerSettings, settings_from

if TYPE_CHECKING:
    import socket

__all__ = ["DEFAULT_HOST", "DEFAULT_PORT", "ServeError", "serve_agent_loop", "validate_and_report"]

DEFAULT_HOST = "0.0.0.0"
DEFAULT_PORT = 9000
LOOPBACK = "127.0.0.1"


class ServeError(Exception):
    """The server cannot be started as it was asked for."""


def serve_agent_loop(  # noqa: PLR0913  the documented signature
    agent_loop: RolloutAgentLoop,
    *,
    host: str | None = None,
    port: int = DEFAULT_PORT,
    validate: bool = True,
    log_level: str = "info",
    reload: bool = False,
    settings: ServerSettings | RolloutSettings | None = None,
    skip_register: bool = False,
    api_key: str | None = None,
    local_debug: bool = False,
    debug_dir: str | os.PathLike[str] | None = None,
    credentials: PlatformLogin | None = None,
) -> None:
    """Serve an agent loop to a trainer until SIGTERM or Ctrl-C.

    Without `skip_register` the server registers with the platform as `credentials` say. Without
    `api_key` the key is `OSMOSIS_SERVER_API_KEY`, else a new one, printed once. `local_debug` goes
    without key and registration, on loopback, and calls any trainer. Raises
    AgentLoopValidationError for an agent loop that is not valid, ServeError for what cannot be.
    """
    _check_request(host, reload=reload, local_debug=local_debug)
    if not (local_debug or skip_register) and credentials is None:
        raise ServeError(
            "registering with the platform needs a login: start the server with `osmosis serve`, "
            "or pass skip_register=True"
        )
    if validate:
        validate_and_report(agent_loop).raise_if_invalid()
    chosen = settings if isinstance(settings, ServerSettings) else settings_from(rollout=settings)
    host = host or (LOOPBACK if local_debug else DEFAULT_HOST)
    key = None if local_debug else _key(api_key)
    with _listening(host, port) as bound:
        app = create_app(
            agent_loop,
            settings=replace(chosen, local=True) if local_debug else chosen,
            credentials=None if skip_register or local_debug else credentials,
            server_host=host,
            server_port=bound.getsockname()[1],
            api_key=key,
            debug_dir=debug_dir,
        )
        logging.getLogger("osmosis").setLevel(log_level.upper())
        print(f"serving {agent_loop.name} on {host}:{bound.getsockname()[1]}", flush=True)
        _run(app, bound)


def _check_request(host: str | None, *, reload: bool, local_debug: bool) -> None:
    if reload:
        raise ServeError(
            "reload=True needs the name of a module to import again: run "
            "`osmosis serve -m module:attribute --reload`"
        )
    if local_debug and host is not None and not is_loopback(host):
        raise ServeError(
            f"local_debug goes without a key, so it listens on loopback, not on {host}: leave out "
            f"host, or pass skip_register=True instead of local_debug=True"
        )


def _key(given: str | None) -> Secret:
    # What the agent starts inherits the environment, and has no use for the key.
    exported = os.environ.pop(KEY_VARIABLE, None)
    name, value = ("api_key", given) if given is not None else (KEY_VARIABLE, exported)
    if value is not None:
        return check_api_key(value, name)
    key = Secret(generate_api_key(), "generated key")
    print(f"API key: {key.reveal()}  (generated, shown only here)", flush=True)
    return key


def _listening(host: str, port: int) -> socket.socket:
    try:
        from .http.uvicorn import listen
    except ImportError:
        needs = "serving needs uvicorn: pip install 'pytest-osmosis[server]'"
        raise ServeError(needs) from None
    try:
        return listen(host, port)
    except OSError as error:
        raise ServeError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _run(app: object, bound: socket.socket) -> None:
    from .http.uvicorn import Server, configure

    Server(configure(app), owns_process=True).run(sockets=[bound])  # type: ignore[arg-type]
