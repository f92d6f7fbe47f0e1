"""`osmosis platform user|workspace|member|token`: accounts, from a script."""

from __future__ import annotations

import sys
from typing import IO

import click

from ..accounts.roles import ROLES
from .options import json_option, needs_extra, show
from .place import Place, changing, place_options

_PASSWORD_LIMIT = 4096


@click.group("user")
def user_group() -> None:
    """Add users.

    \b
    Example:
      osmosis platform user add ann --email ann@example.com
    """


@user_group.command("add")
@click.argument("name")
@click.option("--email", metavar="ADDRESS", help="The user's email address.")
@click.option(
    "--password-file",
    type=click.File("rb"),
    metavar="FILE",
    help="A file with the password, or - for standard input. Without it a terminal is asked; "
    "elsewhere the user gets no password, and can only use tokens.",
)
@place_options
@json_option
@needs_extra
def add_user(
    name: str,
    email: str | None,
    password_file: IO[bytes] | None,
    place: Place,
    as_json: bool,
) -> None:
    """Add a user.

    \b
    Examples:
      osmosis platform user add ann --email ann@example.com
      pwgen 20 1 | osmosis platform user add ann --password-file -
    """
    from ..accounts import registry

    password = _password(password_file)
    with changing(place) as session:
        user = registry.add_user(session, name, email=email, password=password)
    has_password = password is not None
    how = "" if has_password else " without a password: only tokens log this user in"
    document = {"id": user.id, "name": name, "email": email, "has_password": has_password}
    show(document, f"Added the user {name}{how}.", as_json=as_json)


def _password(file: IO[bytes] | None) -> str | None:
    if file is None:
        if not sys.stdin.isatty():
            return None
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    try:
        text = file.read(_PASSWORD_LIMIT).decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("--password-file: the password is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")


@click.group("workspace")
def workspace_group() -> None:
    """Add workspaces.

    \b
    Example:
      osmosis platform workspace add agents --git acme/agents
    """


@workspace_group.command("add")
@click.argument("name")
@click.option(
    "--git",
    "repository",
    required=True,
    metavar="OWNER/REPO",
    help="The repository on GitHub that the workspace is known by.",
)
@click.option(
    "--clone-url",
    metavar="URL",
    help="Where to clone it from instead of GitHub: https, ssh, or a folder of this machine.",
)
@place_options
@json_option
@needs_extra
def add_workspace(
    name: str, repository: str, clone_url: str | None, place: Place, as_json: bool
) -> None:
    """Add the workspace of a repository.

    \b
    Examples:
      osmosis platform workspace add agents --git acme/agents
      osmosis platform workspace add agents --git acme/agents \\
          --clone-url /srv/git/agents.git
    """
    from ..accounts import registry
    from ..accounts.clone_url import CloneUrlError, check_clone_url

    try:
        checked = None if clone_url is None else check_clone_url(clone_url)
    except CloneUrlError as error:
        raise click.UsageError(f"--clone-url: {error}") from None
    with changing(place) as session:
        workspace = registry.add_workspace(session, name, repository, clone_url=checked)
    document = {
        "id": workspace.id,
        "name": name,
        "repository": workspace.repository,
        "clone_url": checked,
    }
    show(document, f"Added the workspace {name} of {workspace.repository}.", as_json=as_json)


@click.group("member")
def member_group() -> None:
    """Add members to workspaces.

    \b
    Example:
      osmosis platform member add agents ann --role owner
    """


@member_group.command("add")
@click.argument("workspace")
@click.argument("user")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="member",
    show_default=True,
    help="A viewer can only look.",
)
@place_options
@json_option
@needs_extra
def add_member(workspace: str, user: str, role: str, place: Place, as_json: bool) -> None:
    """Make a user a member of a workspace, or change the role of one who is.

    \b
    Example:
      osmosis platform member add agents ann --role owner
    """
    from ..accounts import registry

    with changing(place) as session:
        found = registry.find_workspace(session, workspace)
        registry.add_member(session, found, registry.find_user(session, user), role)
    document = {"workspace": workspace, "user": user, "role": role}
    show(document, f"{user} is in {workspace} as {role}.", as_json=as_json)


@click.group("token")
def token_group() -> None:
    """Create tokens.

    \b
    Example:
      osmosis platform token create ann --workspace agents
    """


@token_group.command("create")
@click.argument("user")
@click.option(
    "--workspace",
    metavar="NAME",
    help="The workspace in which the token serves; needed where the user is in several.",
)
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, 3650),
    default=90,
    show_default=True,
    metavar="DAYS",
    help="How long it serves.",
)
@place_options
@json_option
@needs_extra
def create_token(
    user: str, workspace: str | None, expires_in_days: int, place: Place, as_json: bool
) -> None:
    """Create a token and print it, this once.

    Standard output has the token alone.

    \b
    Example:
      osmosis platform token create ann --workspace agents > token.txt
    """
    from ..accounts import registry, tokens
    from ..timestamps import timestamp

    with changing(place) as session:
        owner = registry.find_user(session, user)
        home = registry.choose_workspace(session, owner, workspace)
        token, text = tokens.issue(
            session, owner.id, home.id, label="created", expires_s=expires_in_days * 86_400
        )
    document = {
        "token": text,
        "token_id": token.id,
        "user": user,
        "workspace": home.name,
        "expires_at": timestamp(token.expires_at),
    }
    if not as_json:
        until = f"{token.expires_at:%Y-%m-%d}"
        click.echo(
            f"The token of {user} in {home.name}, until {until}. It is shown only now:", err=True
        )
    show(document, text, as_json=as_json)
