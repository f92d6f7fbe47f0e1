"""`osmosis whoami` and `osmosis logout`: whom the login stands for, and its end."""

from __future__ import annotations

import json
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
from ..credentials.login import KeptLogin, LoginProblem, platform_url
from ..errors import CommandError
from ..eval.lines import say, say_facts, tell
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def whoami_command(as_json: bool) -> None:
    """Ask the platform who you are, in which workspace, and until when."""
    login = active_login()
    with client_of(login.platform_url, login.token) as client:
        identity = verify(client)
    source = "environment" if login.workspace is None else "login"
    if as_json:
        click.echo(json.dumps({**document(login.platform_url, identity), "source": source}))
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
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
        click.echo(json.dumps({"logged_out": ended}))
    else:
        _show(ended)
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


def _show(ended: list[dict[str, Any]]) -> None:
    if not ended:
        say("there is no login to end")
    for one in ended:
        platform = one["platform"]
        say(f"logged out of {render_workspace(one['workspace'] or '')} at {platform}")
        if one["problem"]:
            tell(
                f"warning: the token was removed here, and may still be valid at {platform}: "
                f"{one['problem']}"
            )


def document(platform: str, identity: Identity) -> dict[str, Any]:
    """Return what programs get of a login."""
    return {
        "platform": platform,
        "workspace": identity.workspace or None,
        "role": identity.role or None,
        "user": user_document(identity.user),
        "expires_at": identity.expires_at,
    }


def user_document(user: User) -> dict[str, str | None]:
    """Return a user for programs."""
    return {name: getattr(user, name) or None for name in ("id", "name", "email")}


def render_user(user: User) -> str:
    """Return a user for people."""
    return printable(user.shown) or "an unnamed user"


def render_workspace(name: str, role: str = "") -> str:
    """Return a workspace for people, with the user's role in it."""
    return (printable(name) or EVERY_WORKSPACE) + (f" ({printable(role)})" if role else "")


def render_expiry(moment: datetime, now: float) -> str:
    """Return when a token ends, and in how long that is."""
    left_s = moment.timestamp() - now
    then = f"in {in_words(left_s)}" if left_s > 0 else "in the past"
    return f"{moment:%Y-%m-%d %H:%M} UTC, {then}"
