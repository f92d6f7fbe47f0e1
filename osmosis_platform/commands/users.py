"""`osmosis platform user`: the people and programs that have accounts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar

import click

from .options import ask, show, show_list, yes_option
from .place import DataPlace, changing, looking, place_options

_PASSWORD_LIMIT = 4096
F = TypeVar("F", bound=Callable[..., Any])


def _password_file_option(otherwise: str) -> Callable[[F], F]:
    return click.option(
        "--password-file",
        type=click.File("rb"),
        metavar="FILE",
        help=f"A file with the password, or - for standard input. {otherwise}",
    )


_no_password_option = click.option(
    "--no-password", is_flag=True, help="Let the user use tokens only."
)


@click.group("user")
def user_group() -> None:
    """Add, list, change and remove users.

    \b
    Examples:
      osmosis platform user add ann --email ann@example.com
      osmosis platform user list
    """


@user_group.command("list")
@place_options
def list_users(place: DataPlace, as_json: bool) -> None:
    """List the users, their workspaces and number of tokens.

    \b
    Example:
      osmosis platform user list
    """
    from ..accounts import registry

    with looking(place) as session:
        found = [*registry.user_documents(session)]
    rows = [("name", "email", "logs in by", "tokens", "workspaces")]
    for user in found:
        places = ", ".join(f"{each['name']} ({each['role']})" for each in user["workspaces"])
        how = "password" if user["has_password"] else "tokens only"
        rows.append((user["name"], user["email"] or "", how, str(user["tokens"]), places))
    none = "there are no users; add one: osmosis platform user add NAME"
    show_list("users", found, rows, none=none, as_json=as_json)


@user_group.command("add")
@click.argument("name")
@click.option("--email", metavar="ADDRESS", help="The user's email address.")
@_password_file_option("Without it a terminal is asked.")
@_no_password_option
@place_options
def add_user(
    name: str,
    email: str | None,
    password_file: IO[bytes] | None,
    no_password: bool,
    place: DataPlace,
    as_json: bool,
) -> None:
    """Add a user.

    Without a terminal --password-file or --no-password is needed.

    \b
    Examples:
      osmosis platform user add ann --email ann@example.com
      pwgen 20 1 | osmosis platform user add ann --password-file -
    """
    from ..accounts import registry

    asks = password_file is None and not no_password
    password = _read_password(password_file, asks=asks, no_password=no_password)
    with changing(place) as session:
        user = registry.add_user(session, name, email=email, password=password)
    has_password = password is not None
    how = "" if has_password else " without a password: only tokens log this user in"
    document = {"id": user.id, "name": name, "email": email, "has_password": has_password}
    show(document, f"Added the user {name}{how}.", as_json=as_json)


@user_group.command("set")
@click.argument("name")
@click.option("--email", metavar="ADDRESS", help="The user's email address.")
@click.option("--password", "asks", is_flag=True, help="Ask for a new password.")
@_password_file_option("A new password logs all browsers of the user out.")
@_no_password_option
@place_options
def set_user(
    name: str,
    email: str | None,
    asks: bool,
    password_file: IO[bytes] | None,
    no_password: bool,
    place: DataPlace,
    as_json: bool,
) -> None:
    """Change a user's email address or password.

    \b
    Examples:
      osmosis platform user set ann --password
      osmosis platform user set ann --email ann@example.com
    """
    from ..accounts import browsers, registry

    password = _read_password(password_file, asks=asks, no_password=no_password)
    is_new = asks or no_password or password_file is not None
    if email is None and not is_new:
        raise click.UsageError("nothing to change: give --email, --password or --no-password")
    with changing(place) as session:
        user = registry.find_user(session, name)
        if email is not None:
            registry.set_email(user, email)
        if is_new:
            registry.set_password(user, password)
            browsers.end_all(session, user.id)
    has_password = user.password_hash is not None
    document = {"id": user.id, "name": name, "email": user.email, "has_password": has_password}
    show(document, f"Changed the user {name}.", as_json=as_json)


@user_group.command("remove")
@click.argument("name")
@yes_option
@place_options
def remove_user(name: str, yes: bool, place: DataPlace, as_json: bool) -> None:
    """Remove a user.

    Their logins, tokens, memberships and own secrets go with them. Their runs that have not ended
    are stopped. Runs, datasets and secrets of workspaces that they have made stay, and name their
    maker.

    \b
    Example:
      osmosis platform user remove ann
    """
    from ..accounts import registry
    from ..accounts.tokens import revoke_all
    from ..runs import records

    ask(f"Remove the user {name}, and stop their runs?", yes=yes, as_json=as_json)
    with changing(place) as session:
        user = registry.find_user(session, name)
        tokens = revoke_all(session, user.id)
        runs = records.stop_all(session, user.id)
        registry.remove_user(session, user)
    document = {"name": name, "removed": True, "tokens_revoked": tokens, "runs_stopped": runs}
    show(document, f"Removed the user {name}.", as_json=as_json)


def _read_password(file: IO[bytes] | None, *, asks: bool, no_password: bool) -> str | None:
    """Return the password that was given in one of the three ways; None for none."""
    if sum((asks, file is not None, no_password)) > 1:
        raise click.UsageError("give one of --password, --password-file and --no-password")
    if file is not None:
        return _read(file)
    if not asks:
        return None
    if not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask for a password on: give --password-file, or "
            "--no-password for a user of tokens alone"
        )
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _read(file: IO[bytes]) -> str:
    try:
        text = file.read(_PASSWORD_LIMIT).decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("--password-file: the password is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")
