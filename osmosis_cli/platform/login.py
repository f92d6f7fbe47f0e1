"""`osmosis login`: a token for the platform, by a code in the browser or as it is given."""

from __future__ import annotations

import os
import platform as machine
import sys
from typing import TYPE_CHECKING

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.address import is_private

from ..buffered_output import BufferedStreams
from ..credentials import store
from ..credentials.login import KeptLogin, LoginProblem, platform_url
from ..errors import CommandError, command_errors, usage_errors
from ..eval.lines import LiveLine, say, tell
from ..shared_options import json_option, print_json
from .account import document, render_user, render_workspace
from .connection import client_of, login_problems
from .secret import GivenValue, read_value

if TYPE_CHECKING:
    from osmosis_ai.platform.account import Identity
    from osmosis_ai.platform.client import PlatformClient
    from osmosis_ai.platform.device_flow import DeviceCode
    from osmosis_ai.secret import Secret

EPILOG = """\b
Examples:
  osmosis login
  osmosis login --token - < token.txt
  OSMOSIS_PLATFORM_URL=http://127.0.0.1:8400 osmosis login
"""


@click.command("login", epilog=EPILOG)
@click.option("--force", is_flag=True, help="Log in again, or to one more workspace.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--token", metavar="TOKEN", help="Take this token; with - the one on standard input.")
@json_option
@click.pass_context
def login_command(
    ctx: click.Context, *, force: bool, no_browser: bool, token: str | None, as_json: bool
) -> None:
    """Log in to the platform.

    Prints an address and a code: open the address in a browser, on any machine, and confirm the
    code. Several workspaces and platforms are kept side by side; the last login is the active
    one. The platform is OSMOSIS_PLATFORM_URL, or https://platform.osmosis.ai.
    """
    with login_problems():
        platform = platform_url(os.environ)
    given = _read_token(token) if token is not None else None
    if given is None and as_json and not sys.stderr.isatty():
        raise click.UsageError(
            "with --json there is no terminal on which to show a code: give a token with --token, "
            "or leave out --json"
        )
    if os.environ.get(store.TOKEN):
        tell(f"{store.TOKEN} is set, and is used instead of this login: unset it")
    if given is None and not force and (known := _valid_login(platform)):
        _show(platform, known, as_json=as_json, is_new=False)
        return
    with login_problems():  # before anything is asked for: a token that is not kept is lost
        store.check_keepable(os.environ, tell)
    if given is None:
        with client_of(platform, None) as client:
            given = _confirmed_token(ctx, client, no_browser=no_browser)
    with client_of(platform, given) as client:
        from osmosis_ai.platform.account import verify

        identity = verify(client)
    login = KeptLogin(
        user=identity.user,
        role=identity.role,
        token=given,
        token_id=identity.token_id,
        expires_at=identity.expires_at,
    )
    with login_problems():
        store.keep(os.environ, platform, identity.workspace, login, tell)
    _show(platform, identity, as_json=as_json, is_new=True)


def _read_token(text: str) -> Secret:
    """The token of the option, or of standard input; raises a usage error."""
    from osmosis_ai.secret import check_token

    if text == "-":
        text = read_value(GivenValue("token", "--token", "give it with --token -"), None)
    else:
        tell(
            "warning: --token shows the token to every user of this machine, who can read the "
            "arguments of a process; `--token -` reads it from standard input"
        )
    with usage_errors(ValueError):
        return check_token(text, "--token")


def _valid_login(platform: str) -> Identity | None:
    """Whom the active login that is kept stands for; None when it is of no use any more."""
    from osmosis_ai.platform.account import verify

    kept_only = {name: value for name, value in os.environ.items() if name != store.TOKEN}
    try:
        if (login := store.find_login(kept_only)) is None:
            return None
        with client_of(platform, login.token) as client:
            return verify(client)
    except LoginProblem:
        return None
    except CommandError as error:
        if error.code != "unauthorized":
            raise
        return None


def _confirmed_token(ctx: click.Context, client: PlatformClient, *, no_browser: bool) -> Secret:
    from osmosis_ai.platform.device_flow import DeviceFlowEnded, authorize, wait_for_token

    code = authorize(client, machine.node())
    if streams := ctx.find_object(BufferedStreams):
        streams.err.release()
    _show_code(client.origin, code)
    if not no_browser:
        _open_browser(code.complete_url)
    with command_errors(DeviceFlowEnded), LiveLine() as line:
        line.show("waiting for you to confirm the code in the browser", topic="code")
        return wait_for_token(client, code)


def _show_code(origin: str, code: DeviceCode) -> None:
    minutes = max(1, round(code.expires_s / 60))
    tell(f"to log in at {origin}, open this address in a browser:")
    tell(f"\n  {printable(code.complete_url)}\n")
    tell(f"and confirm the code there, within {minutes} {'minute' if minutes == 1 else 'minutes'}:")
    tell(f"\n  {printable(code.user_code)}\n")


def _open_browser(url: str) -> None:
    """Open a graphical browser, if there is one for whom the terminal is."""
    has_screen = (
        sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if not (has_screen and is_private(url) and sys.stderr.isatty()):
        return
    import webbrowser

    webbrowser.open(url)


def _show(platform: str, identity: Identity, *, as_json: bool, is_new: bool) -> None:
    if as_json:
        print_json(
            {"platform": platform, **document(identity.workspace, identity), "is_new": is_new}
        )
        return
    begin = "logged in" if is_new else "already logged in"
    where = render_workspace(identity.workspace, identity.role)
    say(f"{begin} at {platform} as {render_user(identity.user)}, workspace: {where}")
    if not is_new:
        say("for another workspace, or to log in again: osmosis login --force")
