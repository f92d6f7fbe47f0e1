"""What `osmosis serve` does once it knows what is wanted: load the agent, listen, reload.

Turns a plan into an application and runs it under uvicorn. Reads no command line; the process that
serves under `--reload` gets its plan through the environment.
"""

from __future__ import annotations

import errno
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from osmosis_ai.platform.address import is_loopback
from osmosis_ai.secret import Secret
from osmosis_ai.secret_variables import masking

from ..errors import CommandError, check_terminated, usage_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import uvicorn

    from osmosis_ai.rollout import RolloutAgentLoop
    from osmosis_ai.rollout_server.app import RolloutApp
    from osmosis_ai.rollout_server.settings import ServerSettings

    from ..credentials.login import Login

KEY_VARIABLE = "OSMOSIS_SERVER_API_KEY"
PLAN_VARIABLE = "_OSMOSIS_SERVE_PLAN"
"""How the process that reloads tells the one that serves what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the command line asks for; holds no key."""

    module: str
    import_timeout_s: float
    host: str
    port: int
    validate: bool
    register: bool
    local: bool
    allowed_trainers: tuple[str, ...]
    max_concurrent: int
    drain_s: float
    log_level: str
    log_dir: str | None

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """The server's address, from the host and port that it listens on."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def load_agent(plan: Plan) -> RolloutAgentLoop:
    """Return the agent, checked as `osmosis validate` does unless the plan says otherwise."""
    from osmosis_ai.agents.plain_callable import CallableAgent

    from ..agent import validate

    with redirect_stdout(sys.stderr):  # what the module prints at import
        agent = validate.load_loop(plan.module, plan.import_timeout_s)
        if plan.validate:
            validate.check_agent(agent, advice=" and cannot be served (--no-validate serves it)")
    if agent.asks_model and not isinstance(agent, CallableAgent):
        return agent
    raise CommandError(
        f"{agent.name} never asks the trainer's model, so there is nothing to train: "
        f"write `async def {agent.name}(ctx)`, which asks it with `ctx.chat`",
        code="invalid",
    )


def has_platform() -> bool:
    """Return whether there is a platform to register with: a workspace of one, or a login."""
    from osmosis_ai.platform.workspace import is_workspace

    from ..credentials.login import LoginProblem
    from ..credentials.store import find_login

    try:
        return is_workspace(Path.cwd()) or find_login() is not None
    except LoginProblem:
        return True


def find_platform() -> Login:
    """Return the login that registers the server; raise CommandError without one."""
    from ..credentials.login import LoginProblem
    from ..credentials.store import TOKEN, find_login

    skip = "serve without the platform: --skip-register, or --local"
    try:
        login = find_login()
    except LoginProblem as error:
        raise CommandError(f"{error} (or {skip})", code="login") from None
    if login is None:
        raise CommandError(
            "registering with the platform needs a login: run `osmosis login`, "
            f"set {TOKEN}, or {skip}",
            code="login",
        )
    return login


def settings_of(plan: Plan) -> ServerSettings:
    """Return the server's settings; what they refuse is a usage error."""
    from osmosis_ai.rollout_server.settings import of_rollout
    from osmosis_ai.rollout_settings import get_settings

    with usage_errors(ValueError):
        return replace(
            of_rollout(get_settings()),
            max_concurrent=plan.max_concurrent,
            allowed_trainers=plan.allowed_trainers,
            local=plan.local,
            drain_s=plan.drain_s,
        )


def bind(plan: Plan) -> socket.socket:
    """Return the socket to listen on."""
    try:
        from osmosis_ai.rollout_server.http.uvicorn import listen
    except ImportError:
        needs = "osmosis serve needs uvicorn: pip install 'pytest-osmosis[server]'"
        raise CommandError(needs, code="not_installed") from None
    try:
        return listen(plan.host, plan.port)
    except OSError as error:
        what = f"cannot listen on {plan.host}:{plan.port}: {error.strerror or error}"
        cure = "-p/--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "-H/--host"
        raise CommandError(f"{what}; choose another with {cure}", code="address") from None


def make_app(
    plan: Plan, agent: RolloutAgentLoop, key: Secret | None, login: Login | None
) -> RolloutApp:
    """Return the application that the plan describes."""
    from osmosis_ai.rollout import create_app

    return create_app(
        agent,
        settings=settings_of(plan),
        credentials=login,
        server_host=plan.host,
        server_port=plan.port,
        api_key=key,
        debug_dir=plan.log_dir,
    )


def serve(app: RolloutApp, bound: socket.socket) -> None:
    """Serve until a signal ends it."""
    from osmosis_ai.rollout_server.http.uvicorn import configure

    try:
        _run(configure(app), [bound])
    except SystemExit:
        raise CommandError("the server could not start: its log says why", code="start") from None


def serve_with_reload(plan: Plan, key: Secret | None, bound: socket.socket) -> None:
    """Serve in a child process that is restarted when a source file changes."""
    from uvicorn.supervisors import ChangeReload

    from osmosis_ai.rollout_server.http.uvicorn import configure

    os.environ[PLAN_VARIABLE] = json.dumps(asdict(plan))
    if key is not None:
        os.environ[KEY_VARIABLE] = key.reveal()
    name = f"{__name__}:{app_to_reload.__name__}"
    config = configure(name, factory=True, reload=True, reload_dirs=[str(Path.cwd())])
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}
    reloader = ChangeReload(config, target=partial(_run, config), sockets=[bound])
    ended_by: list[int] = []
    ending = reloader.signal_handler

    def noted(sig: int, frame: FrameType | None) -> None:
        ended_by.append(sig)
        ending(sig, frame)

    reloader.signal_handler = noted  # type: ignore[method-assign]
    reloader.run()
    for which, handler in before.items():
        signal.signal(which, handler)
    if ended_by:
        signal.raise_signal(ended_by[0])  # the exit status tells of it, as it does without --reload


def _run(config: uvicorn.Config, sockets: list[socket.socket] | None) -> None:
    from osmosis_ai.rollout_server.http.uvicorn import Server

    server = Server(config, owns_process=True)
    check_terminated()  # from now on the server sees to signals
    server.run(sockets=sockets)


def app_to_reload() -> RolloutApp:
    """Return the application as the process that reloads was asked for it."""
    threading.Thread(target=_end_with_reloader, daemon=True).start()
    values = json.loads(os.environ[PLAN_VARIABLE])
    plan = Plan(**{**values, "allowed_trainers": tuple(values["allowed_trainers"])})
    value = os.environ.pop(KEY_VARIABLE, None)  # the agent's own child processes need no key
    key = None if value is None else Secret(value, KEY_VARIABLE)
    log_to_stderr(plan, key)
    try:
        return make_app(plan, load_agent(plan), key, find_platform() if plan.register else None)
    except click.ClickException as error:
        error.show()
        sys.exit(1)


def _end_with_reloader() -> None:
    """Stop serving when the process that reloads has ended, however that happened."""
    reloader = multiprocessing.parent_process()
    assert reloader is not None
    reloader.join()
    os.kill(os.getpid(), signal.SIGTERM)


def log_to_stderr(plan: Plan, key: Secret | None) -> None:
    """Log lines with a UTC time and a level, and without the key."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(masking(key)))
    level = getattr(logging, plan.log_level.upper())
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    logging.getLogger("osmosis").setLevel(level)
    for library in ("uvicorn", "httpx"):  # what they say of each request, we say ourselves
        logging.getLogger(library).setLevel(max(level, logging.WARNING))


class LogFormatter(logging.Formatter):
    """Lines with a UTC time and a level, without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        layout = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"
        super().__init__(layout, datefmt="%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and the lines of its exception."""
        return self._redact(super().format(record))
