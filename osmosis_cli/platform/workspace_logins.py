"""`osmosis workspace list|current|switch`: the workspaces with a login. Sends nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import click

from osmosis_ai.escaping import printable

from ..credentials import store
from ..credentials.login import KeptLogin, LoginProblem, PlatformLogins, platform_url
from ..errors import CommandError
from ..eval.lines import say, say_table, tell
from ..lazy_group import nearest
from .account import render_expiry, render_user, render_workspace, user_document
from .connection import login_problems

_HEADER = ("workspace", "active", "role", "user", "login expires")


@click.command("list", epilog="\b\nExample:\n  osmosis workspace list --json\n")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def workspace_list(as_json: bool) -> None:
    """List the workspaces that you are logged in to, on the chosen platform."""
    platform, here = _here()
    if as_json:
        spaces = [_document(name, each, here.active) for name, each in here.workspaces.items()]
        click.echo(json.dumps({"platform": platform, "workspaces": spaces}))
    elif not here.workspaces:
        say(f"you are not logged in at {platform}: run `osmosis login`")
    else:
        now = time.time()
        rows = [
            (
                render_workspace(name),
                "yes" if name == here.active else "",
                printable(login.role),
                render_user(login.user),
                render_expiry(login.expiry, now),
            )
            for name, login in here.workspaces.items()
        ]
        say_table([_HEADER, *rows])
    _warn_of_variable()


@click.command("current", epilog="\b\nExample:\n  osmosis workspace current\n")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def workspace_current(as_json: bool) -> None:
    """Print the name of the active workspace, of which the login is used."""
    platform, here = _here()
    if here.active is None:
        then = "run `osmosis login`" if not here.workspaces else _choose(here.workspaces)
        raise CommandError(f"no workspace at {platform} is active: {then}", code="login")
    if as_json:
        found = _document(here.active, here.workspaces[here.active], here.active)
        click.echo(json.dumps({"platform": platform, **found}))
    else:
        say(render_workspace(here.active))
    _warn_of_variable()


@click.command("switch", epilog="\b\nExample:\n  osmosis workspace switch acme\n")
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def workspace_switch(name: str, as_json: bool) -> None:
    """Make a workspace that you are logged in to the active one."""
    platform, here = _here()
    with login_problems():
        known = list(here.workspaces)
        if name not in known:
            raise LoginProblem(
                f"you are not logged in to a workspace {printable(name)!r} at {platform}."
                f"{nearest(name, known)} For one more workspace: `osmosis login --force`"
            )
        store.switch(os.environ, platform, name, tell)
    if as_json:
        click.echo(json.dumps({"platform": platform, "workspace": name}))
    else:
        say(f"the active workspace at {platform} is {render_workspace(name)}")
    _warn_of_variable()


def _here() -> tuple[str, PlatformLogins]:
    """Return the chosen platform, and the logins at it."""
    with login_problems():
        platform = platform_url(os.environ)
        return platform, store.read_logins(os.environ).at(platform)


def _document(name: str, login: KeptLogin, active: str | None) -> dict[str, Any]:
    return {
        "workspace": name or None,
        "is_active": name == active,
        "role": login.role or None,
        "user": user_document(login.user),
        "expires_at": login.expires_at,
        "is_expired": login.is_expired(time.time()),
    }


def _choose(workspaces: Mapping[str, KeptLogin]) -> str:
    names = ", ".join(map(repr, workspaces))
    return f"choose one with `osmosis workspace switch NAME` ({names})"


def _warn_of_variable() -> None:
    if os.environ.get(store.TOKEN):
        tell(f"{store.TOKEN} is set, and is used instead: `osmosis whoami`")
