"""`osmosis platform workspace`: one for each repository that runs are submitted from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .options import ask, may_ask, show, show_list, yes_option
from .place import DataPlace, accounts_opened, changing, looking, place_options

if TYPE_CHECKING:
    from ..database.models import Workspace

_clone_url_option = click.option(
    "--clone-url",
    metavar="URL",
    help="Where to clone it from instead of GitHub: https, ssh, or a repository in a folder.",
)


@click.group("workspace")
def workspace_group() -> None:
    """Add, list, change and remove workspaces.

    \b
    Examples:
      osmosis platform workspace add agents --git acme/agents
      osmosis platform workspace list
    """


@workspace_group.command("list")
@place_options
def list_workspaces(place: DataPlace, as_json: bool) -> None:
    """List the workspaces, and where each is cloned from.

    \b
    Example:
      osmosis platform workspace list
    """
    from ..accounts import registry

    with looking(place) as session:
        found = [*registry.workspace_documents(session)]
    rows = [("name", "repository", "cloned from", "members", "runs")]
    for each in found:
        where = each["clone_url"] or "GitHub"
        counts = str(each["members"]), str(each["runs"])
        rows.append((each["name"], each["repository"], where, *counts))
    none = "there are no workspaces; add one: osmosis platform workspace add NAME --git OWNER/REPO"
    show_list("workspaces", found, rows, none=none, as_json=as_json)


@workspace_group.command("add")
@click.argument("name")
@click.option(
    "--git",
    "repository",
    required=True,
    metavar="OWNER/REPO",
    help="The repository on GitHub that the workspace is known by.",
)
@_clone_url_option
@place_options
def add_workspace(
    name: str, repository: str, clone_url: str | None, place: DataPlace, as_json: bool
) -> None:
    """Add the workspace of a repository.

    \b
    Examples:
      osmosis platform workspace add agents --git acme/agents
      osmosis platform workspace add agents --git acme/agents \\
          --clone-url /srv/git/agents.git
    """
    from ..accounts import registry

    checked = _checked(clone_url)
    with changing(place) as session:
        workspace = registry.add_workspace(session, name, repository, clone_url=checked)
    show(
        _document(workspace),
        f"Added the workspace {name} of {workspace.repository}.",
        as_json=as_json,
    )


@workspace_group.command("set")
@click.argument("name")
@click.option(
    "--git",
    "repository",
    metavar="OWNER/REPO",
    help="The repository on GitHub that the workspace is known by from now on.",
)
@_clone_url_option
@click.option("--no-clone-url", is_flag=True, help="Clone from GitHub again.")
@place_options
def set_workspace(
    name: str,
    repository: str | None,
    clone_url: str | None,
    no_clone_url: bool,
    place: DataPlace,
    as_json: bool,
) -> None:
    """Change the repository of a workspace, or where it is cloned from.

    Runs that have begun keep what they have cloned.

    \b
    Example:
      osmosis platform workspace set agents --clone-url /srv/git/agents.git
    """
    from ..accounts import registry

    if clone_url is not None and no_clone_url:
        raise click.UsageError("give one of --clone-url and --no-clone-url")
    if repository is None and clone_url is None and not no_clone_url:
        raise click.UsageError("nothing to change: give --git, --clone-url or --no-clone-url")
    checked = _checked(clone_url)
    with changing(place) as session:
        workspace = registry.find_workspace(session, name)
        if repository is not None:
            registry.set_repository(session, workspace, repository)
        if checked is not None or no_clone_url:
            workspace.clone_url = checked
    show(_document(workspace), f"Changed the workspace {name}.", as_json=as_json)


@workspace_group.command("remove")
@click.argument("name")
@yes_option
@place_options
def remove_workspace(name: str, yes: bool, place: DataPlace, as_json: bool) -> None:
    """Remove a workspace with all that it has.

    Its runs, reports, datasets, secrets, tokens and files go, and what trainers have left of its
    runs. The repository stays as it is, and so do the users. Refused while it has active runs. One
    that was ended half-way is begun again.

    \b
    Example:
      osmosis platform workspace remove agents
    """
    from pytest_osmosis.escaping import counted

    from ..accounts import registry
    from ..database.connection import count
    from ..database.models import Run
    from ..execution import deletion

    may_ask(yes=yes, as_json=as_json)
    with looking(place) as session:
        workspace = registry.find_workspace(session, name)
        deletion.check_ended(session, workspace)
        runs = counted(count(session, Run.workspace_id == workspace.id), "run")
    ask(f"Remove {name} of {workspace.repository} with {runs}, for good?", yes=yes, as_json=as_json)
    with accounts_opened(place) as database:
        removed = deletion.remove_workspace(database, place.data, name)
    document = {"name": name, "removed": True, "runs": removed}
    show(document, f"Removed the workspace {name}.", as_json=as_json)


def _checked(clone_url: str | None) -> str | None:
    from ..accounts.registry import CloneUrlError, check_clone_url

    try:
        return None if clone_url is None else check_clone_url(clone_url)
    except CloneUrlError as error:
        raise click.UsageError(f"--clone-url: {error}") from None


def _document(workspace: Workspace) -> dict[str, Any]:
    names = ("id", "name", "repository", "clone_url")
    return {name: getattr(workspace, name) for name in names}
