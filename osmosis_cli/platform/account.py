"""`osmosis whoami`, `logout` and `workspace list|current|switch`: the logins of this machine."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from typing import Any

import click

from osmosis_ai.escaping import printable
from osmosis_ai.models.retry import in_words
from osmosis_ai.platform.account import Identity, User, parse_moment, revoke, verify

from ..credentials import store
from ..credentials.login import KeptLogin, LoginProblem, PlatformLogins, platform_url
from ..errors import CommandError
from ..eval.lines import say, say_facts, say_table, tell
from ..lazy_group import nearest
from ..shared_options import json_option, print_json, yes_option
from .connection import active_login, client_of, login_problems

EVERY_WORKSPACE = "every workspace of yours"
WHOAMI_EPILOG = """\b
Example:
  osmosis whoami --json
"""
LOGOUT_EPILOG = """\b
Examples:
  osmosis logout
  osmosis logout --all --yes
"""


@click.command("whoami", epilog=WHOAMI_EPILOG)
@json_option
def whoami_command(as_json: bool) -> None:
    """Ask the platform who you are, in which workspace, and until when."""
    login = active_login()
    with client_of(login.platform_url, login.token) as client:
        identity = verify(client)
    source = "environment" if login.workspace is None else "login"
    if as_json:
        print_json(
            {
                "platform": login.platform_url,
                **document(identity.workspace, identity),
                "source": source,
            }
        )
        return
    say(render_user(identity.user))
    expiry = render_expiry(parse_moment(identity.expires_at), time.time())
    parts = {
        "workspace": render_workspace(identity.workspace, identity.role),
        "platform": login.platform_url,
        "login": f"expires {expiry}",
    }
    if login.workspace is None:
        parts["token"] = f"of {store.TOKEN}"
    say_facts(parts)


@click.command("logout", epilog=LOGOUT_EPILOG)
@click.option("--all", "all_logins", is_flag=True, help="Of every workspace at every platform.")
@yes_option
@json_option
def logout_command(*, all_logins: bool, yes: bool, as_json: bool) -> None:
    """Log out of the active workspace: revoke the token, and remove it from this machine.

    The token is removed also when the platform cannot be reached to revoke it.
    """
    with login_problems():
        chosen = _choose_logins(all_logins=all_logins)
    if chosen and not yes:
        _confirm(chosen)
    ended = [_log_out(platform, name, login) for platform, name, login in chosen]
    if as_json:
        print_json({"logged_out": ended})
    elif not ended:
        say("there is no login to end")
    for one in () if as_json else ended:
        platform = one["platform"]
        say(f"logged out of {render_workspace(one['workspace'] or '')} at {platform}")
        if one["problem"]:
            tell(
                f"warning: the token was removed here, and may still be valid at {platform}: "
                f"{one['problem']}"
            )
    if os.environ.get(store.TOKEN):
        tell(f"{store.TOKEN} is still set: `unset {store.TOKEN}`")


def _choose_logins(*, all_logins: bool) -> list[tuple[str, str, KeptLogin]]:
    platform, logins = platform_url(os.environ), store.read_logins(os.environ)
    if all_logins:
        return [
            (url, name, login)
            for url, here in logins.platforms.items()
            for name, login in here.workspaces.items()
        ]
    here = logins.at(platform)
    if here.active is None and here.workspaces:
        known = ", ".join(map(repr, here.workspaces))
        raise LoginProblem(
            f"no workspace at {platform} is active ({known}): choose one with "
            "`osmosis workspace switch NAME`, or log out of all with --all"
        )
    return [] if here.active is None else [(platform, here.active, here.workspaces[here.active])]


def _confirm(chosen: list[tuple[str, str, KeptLogin]]) -> None:
    named = ", ".join(f"{render_workspace(name)} at {platform}" for platform, name, _ in chosen)
    if not sys.stdin.isatty():
        raise click.UsageError(f"give --yes to log out of {named}: there is no terminal to ask on")
    click.confirm(f"Log out of {named}?", abort=True, err=True)


def _log_out(platform: str, workspace: str, login: KeptLogin) -> dict[str, Any]:
    """Remove a login; return what became of it, and why its token may still be valid."""
    problem = _revoke(platform, workspace, login)
    with login_problems():
        store.forget(os.environ, platform, workspace, tell)
    ended = {"platform": platform, "workspace": workspace or None}
    return {**ended, "revoked": problem is None, "problem": problem}


def _revoke(platform: str, workspace: str, login: KeptLogin) -> str | None:
    """Revoke a token at its platform; why that may have failed, as a sentence."""
    if login.is_expired(time.time()):
        return None
    if not login.token_id:
        return "the platform gave the token no id"
    try:
        token = store.find_token(platform, workspace, login)
        with client_of(platform, token) as client:
            revoke(client, login.token_id)
    except (CommandError, LoginProblem, ValueError) as error:
        return str(error)
    return None


def document(workspace: str, login: Identity | KeptLogin) -> dict[str, Any]:
    """Return what programs get of a login."""
    user = {name: getattr(login.user, name) or None for name in ("id", "name", "email")}
    return {
        "workspace": workspace or None,
        "role": login.role or None,
        "user": user,
        "expires_at": login.expires_at,
    }


def render_user(user: User) -> str:
    """Return a user for people."""
    return printable(user.display_name) or "an unnamed user"


def render_workspace(name: str, role: str = "") -> str:
    """Return a workspace for people, with the user's role in it."""
    return (printable(name) or EVERY_WORKSPACE) + (f" ({printable(role)})" if role else "")


def render_expiry(moment: datetime, now: float) -> str:
    """Return when a token ends, and in how long that is."""
    left_s = moment.timestamp() - now
    then = f"in {in_words(left_s)}" if left_s > 0 else "in the past"
    return f"{moment:%Y-%m-%d %H:%M} UTC, {then}"


_LIST_HEADER = ("workspace", "active", "role", "user", "login expires")


@click.command("list", epilog="\b\nExample:\n  osmosis workspace list --json\n")
@json_option
def workspace_list(as_json: bool) -> None:
    """List the workspaces that you are logged in to, on the chosen platform."""
    platform, here = _here()
    if as_json:
        spaces = [_document(name, each, here.active) for name, each in here.workspaces.items()]
        print_json({"platform": platform, "workspaces": spaces})
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
        say_table([_LIST_HEADER, *rows])
    _warn_of_variable()


@click.command("current", epilog="\b\nExample:\n  osmosis workspace current\n")
@json_option
def workspace_current(as_json: bool) -> None:
    """Print the name of the active workspace, of which the login is used."""
    platform, here = _here()
    if here.active is None:
        names = ", ".join(map(repr, here.workspaces))
        choose = f"choose one with `osmosis workspace switch NAME` ({names})"
        then = choose if here.workspaces else "run `osmosis login`"
        raise CommandError(f"no workspace at {platform} is active: {then}", code="login")
    if as_json:
        found = _document(here.active, here.workspaces[here.active], here.active)
        print_json({"platform": platform, **found})
    else:
        say(render_workspace(here.active))
    _warn_of_variable()


@click.command("switch", epilog="\b\nExample:\n  osmosis workspace switch acme\n")
@click.argument("name", metavar="NAME")
@json_option
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
        print_json({"platform": platform, "workspace": name})
    else:
        say(f"the active workspace at {platform} is {render_workspace(name)}")
    _warn_of_variable()


def _here() -> tuple[str, PlatformLogins]:
    """Return the chosen platform, and the logins at it."""
    with login_problems():
        platform = platform_url(os.environ)
        return platform, store.read_logins(os.environ).at(platform)


def _document(name: str, login: KeptLogin, active: str | None) -> dict[str, Any]:
    expired = {"is_active": name == active, "is_expired": login.is_expired(time.time())}
    return {**document(name, login), **expired}


def _warn_of_variable() -> None:
    if os.environ.get(store.TOKEN):
        tell(f"{store.TOKEN} is set, and is used instead: `osmosis whoami`")
