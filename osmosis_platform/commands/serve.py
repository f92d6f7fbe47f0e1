"""`osmosis platform serve`: the platform on a port of this machine."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from osmosis_ai.http_server import url_of

from .execution_options import Executing, execution_options
from .place import DataPlace, opened, place_options

if TYPE_CHECKING:
    from socket import socket

    from starlette.applications import Starlette

    from ..database.connection import Database
    from ..execution.scheduler import Scheduler
    from ..vault.cipher import Vault

SILENCE_S = 15.0
"""Of a database server, after which its connection is lost. Locks are waited for less long."""


port_option = click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="The port; 0 is any that is free.",
)


@click.command("serve")
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. One that other machines reach needs --public-url.",
)
@port_option
@click.option(
    "--public-url",
    metavar="URL",
    help="Where users reach the platform, as https://osmosis.example.com behind a proxy that "
    "speaks TLS.",
)
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="How standard error has the log: lines to read, or a JSON document a line.",
)
@click.option(
    "--log-level",
    type=click.Choice(("info", "warning", "error")),
    default="warning",
    show_default=True,
    help="The least that is logged; info has every request and run.",
)
@place_options
@execution_options
def serve_command(
    host: str,
    port: int,
    public_url: str | None,
    executing: Executing,
    log_format: str,
    log_level: str,
    place: DataPlace,
    as_json: bool,
    announce: Callable[[str, Database], None] | None = None,
) -> None:
    """Serve a platform until Ctrl-C.

    Takes submitted runs, datasets and secrets, and executes evaluations as child processes of this
    machine. A submitted run is code: without --run-as and --wrapper it runs as your user, without a
    sandbox. Training runs are handed to --trainer, and refused without one.

    \b
    Examples:
      osmosis platform serve
      osmosis platform serve --host 0.0.0.0 \\
          --public-url https://osmosis.example.com
    """
    from ..app import create_app
    from ..execution import deletion
    from ..http import log
    from ..settings import ServerLimits, Settings

    folder = place.data
    hosts = _hosts(host, public_url)
    settings = Settings(
        folder,
        public_url,
        hosts,
        has_trainer=executing.trainer is not None,
        limits=replace(ServerLimits(), dataset_bytes=executing.max_upload),
    )
    log.configure(log_format, log_level)
    with opened(place, SILENCE_S) as database:
        _close_to_others(folder)
        vault = _vault(folder, database)
        deletion.sweep(database, folder)
        bound = _bind(host, port)
        with bound:
            if announce is None:
                _say(url_of(bound), public_url, folder, as_json=as_json)
            else:
                announce(url_of(bound), database)
            scheduler = _scheduler(folder, database, vault, executing)
            app = create_app(settings, database, vault, scheduler)
            # As osmosis_cli.errors has it: a signal is how this ends, and no error to print.
            click.get_current_context().meta["osmosis.ends_by_signal"] = True
            _serve(app, bound)


def _serve(app: Starlette, bound: socket) -> None:
    """Answer requests until a signal; then end at once what takes long."""
    from osmosis_ai.rollout_server.http.uvicorn import Server, configure

    class PlatformServer(Server):
        async def shutdown(self, sockets: list[socket] | None = None) -> None:
            app.state.checks.closing.set()
            await super().shutdown(sockets)

    PlatformServer(configure(app)).run(sockets=[bound])


def _scheduler(
    folder: Path, database: Database, vault: Vault, executing: Executing
) -> Scheduler | None:
    """Return what executes runs; None where none are to be."""
    import threading

    from osmosis_ai.platform.run_kinds import EVALUATION, KINDS

    from ..environments.build import Environments
    from ..execution.claims import Claims
    from ..execution.scheduler import Scheduler
    from ..execution.services import Services
    from ..identifiers import new_id

    if executing.max_runs == 0:
        return None
    kinds = tuple(kind.name for kind in KINDS if kind is EVALUATION or executing.trainer)
    environments = None
    if executing.builds is not None:
        environments = Environments(folder, executing.executor, executing.builds)
    services = Services(
        folder,
        Claims(database, new_id(), kinds=kinds, of_user=executing.max_user_runs),
        vault,
        executing.executor,
        threading.Event(),
        environments,
        executing.confinement,
        executing.trainer,
        executing.keep_runs,
    )
    return Scheduler(services, max_runs=executing.max_runs)


def _hosts(host: str, public_url: str | None) -> frozenset[str]:
    """Return the names by which the platform is known."""
    from osmosis_ai.platform.address import is_loopback

    from ..settings import LOOPBACK

    if public_url is not None:
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise click.UsageError("--public-url must be https://HOST or http://HOST, with no path")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise click.UsageError(
                f"--public-url {public_url}: tokens and secrets must not travel over plain http: "
                "put a proxy that speaks TLS in front, and name its https:// address"
            )
        return LOOPBACK | {parts.hostname}
    if not is_loopback(host):
        raise click.UsageError(
            f"--host {host} can be reached from other machines: say with --public-url where, as "
            "https://osmosis.example.com; tokens and secrets must not travel over plain http"
        )
    return LOOPBACK | {host.lower()}


def _close_to_others(folder: Path) -> None:
    """Take from others what they may read or change in the data folder, and say so.

    Copies of the folder come with other modes, and `--run-as` lets a user go through it.
    """
    from ..database.connection import FILE_NAME

    for path in (folder, *(folder / name for name in (FILE_NAME, "datasets", "runs"))):
        if not path.exists() or not (found := stat.S_IMODE(path.stat().st_mode)) & 0o066:
            continue
        mode = 0o700 if path.is_dir() else 0o600
        try:
            path.chmod(mode)
        except PermissionError:
            message = "others can use %s (mode %o), which is not this user's to change: chmod %o"
        else:
            message = "others could use %s (mode %o): it has the mode %o now"
        logging.getLogger("osmosis_platform").warning(message, path, found, mode)


def _vault(folder: Path, database: Database) -> Vault:
    """Return the vault whose key encrypted the stored secrets."""
    from ..vault.cipher import FILE_NAME, KEY_VARIABLE, KeyProblem, open_vault
    from ..vault.records import check_key, has_secrets

    key, file = os.environ.get(KEY_VARIABLE), folder / FILE_NAME
    try:
        with database.reading() as session:
            if key is None and not file.exists() and has_secrets(session):
                raise KeyProblem(
                    f"{file}, which encrypted the stored secrets, is gone: put it back"
                )
            vault = open_vault(folder, key)
            check_key(session, vault)
    except KeyProblem as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"--data {folder}: the key: {error.strerror}") from None
    return vault


def _bind(host: str, port: int) -> socket:
    from osmosis_ai.rollout_server.http.uvicorn import listen

    try:
        return listen(host, port)
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise click.ClickException(f"{message}; choose another {other}") from None


def _say(url: str, public_url: str | None, folder: Path, *, as_json: bool) -> None:
    users = (public_url or url).rstrip("/")
    if as_json:
        click.echo(json.dumps({"url": url, "public_url": users, "data": str(folder)}))
        release_streams()
    else:
        what = "is at" if users == url else "listens on"
        click.echo(f"The platform {what} {url}, its data in {folder}. Ctrl-C ends it.")
        click.echo(f"Users reach it with OSMOSIS_PLATFORM_URL={users}")
    sys.stdout.flush()


def release_streams() -> None:
    """Print now what the command keeps back until it ends, as `osmosis` does with `--json`."""
    streams = click.get_current_context().obj
    for stream in (getattr(streams, "out", None), getattr(streams, "err", None)):
        if stream is not None:
            stream.release()
