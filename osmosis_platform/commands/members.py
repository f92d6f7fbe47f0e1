"""`osmosis platform member`: who is in a workspace, and as what."""

from __future__ import annotations

import click

from ..accounts.roles import ROLES
from .options import ask, show, show_list, yes_option
from .place import DataPlace, changing, looking, place_options


@click.group("member")
def member_group() -> None:
    """Add, list, change and remove members of workspaces.

    \b
    Examples:
      osmosis platform member add agents ann --role owner
      osmosis platform member list agents
    """


@member_group.command("list")
@click.argument("workspace")
@place_options
def list_members(workspace: str, place: DataPlace, as_json: bool) -> None:
    """List the members of a workspace with their roles.

    \b
    Example:
      osmosis platform member list agents
    """
    from ..accounts import registry

    with looking(place) as session:
        home = registry.find_workspace(session, workspace)
        found = registry.members_of(session, home.id)
    documents = [{"user": user.name, "email": user.email, "role": role} for user, role in found]
    rows = [("user", "role", "email")]
    rows += [(user.name, role, user.email or "") for user, role in found]
    none = f"{workspace} has no members; add one: osmosis platform member add {workspace} USER"
    show_list("members", documents, rows, none=none, as_json=as_json)


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
def add_member(workspace: str, user: str, role: str, place: DataPlace, as_json: bool) -> None:
    """Make a user a member of a workspace, or change their role.

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


@member_group.command("remove")
@click.argument("workspace")
@click.argument("user")
@yes_option
@place_options
def remove_member(workspace: str, user: str, yes: bool, place: DataPlace, as_json: bool) -> None:
    """Take a user out of a workspace; their tokens for it no longer work.

    \b
    Example:
      osmosis platform member remove agents ann
    """
    from ..accounts import registry
    from ..database.models import Member

    ask(f"Take {user} out of {workspace}?", yes=yes, as_json=as_json)
    with changing(place) as session:
        home = registry.find_workspace(session, workspace)
        found = registry.find_user(session, user)
        if session.get(Member, (home.id, found.id)) is None:
            raise registry.AccountError(f"{user} is no member of {workspace}")
        registry.remove_member(session, home.id, found.id)
    document = {"workspace": workspace, "user": user, "removed": True}
    show(document, f"{user} is no longer in {workspace}.", as_json=as_json)
