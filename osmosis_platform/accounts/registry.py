"""Users, workspaces and members: adding, changing, finding, listing and removing them.

Raises `AccountError`, a sentence for the operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from ..database.connection import count
from ..database.models import (
    Dataset,
    DeviceGrant,
    Member,
    RolloutServer,
    Run,
    StoredSecret,
    Token,
    User,
    Workspace,
    now,
)
from ..identifiers import timestamp
from . import browsers
from .passwords import hash_password, problem
from .roles import ROLES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_REPOSITORY = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38})/[a-z0-9._][a-z0-9._-]{0,99}")


class AccountError(Exception):
    """An account that cannot be added, or is not there."""


class WrongValue(AccountError):
    """A name, an address or a role that cannot be one."""


def add_user(
    session: Session, name: str, *, email: str | None = None, password: str | None = None
) -> User:
    """Add a user, who without a password can only use tokens."""
    _check_name(name, "a user")
    if session.scalar(select(User.id).where(User.name == name)) is not None:
        raise AccountError(f"there is a user {name!r} already")
    user = User(name=name)
    if email is not None:
        set_email(user, email)
    set_password(user, password)
    session.add(user)
    session.flush()
    return user


def set_email(user: User, email: str) -> None:
    """Set the address of a user."""
    if not re.fullmatch(r"[^\s@]+@[^\s@]+", email):
        raise WrongValue("the email address must look like name@example.com")
    user.email = email


def set_password(user: User, password: str | None) -> None:
    """Set the password of a user; with None the user can only use tokens."""
    if password is not None and (wrong := problem(password)):
        raise WrongValue(wrong)
    user.password_hash = None if password is None else hash_password(password)


def add_workspace(
    session: Session, name: str, repository: str, *, clone_url: str | None = None
) -> Workspace:
    """Add the workspace of a repository."""
    _check_name(name, "a workspace")
    checked = _free_repository(session, repository, name)
    if session.scalar(select(Workspace.id).where(Workspace.name == name)) is not None:
        raise AccountError(f"there is a workspace {name!r} already")
    workspace = Workspace(name=name, repository=checked, clone_url=clone_url)
    session.add(workspace)
    session.flush()
    return workspace


def set_repository(session: Session, workspace: Workspace, repository: str) -> None:
    """Let a workspace be known by another repository."""
    workspace.repository = _free_repository(session, repository, workspace.name)


def _free_repository(session: Session, given: str, name: str) -> str:
    """Return the repository for a workspace, which no other one has."""
    repository = given.lower()
    if not is_repository(repository):
        raise WrongValue(f"{given!r} is no OWNER/REPO, as in acme/agents")
    other = session.scalar(select(Workspace.name).where(Workspace.repository == repository))
    if other not in (None, name):
        raise AccountError(f"{repository} is the repository of the workspace {other!r} already")
    return repository


def add_member(session: Session, workspace: Workspace, user: User, role: str = "member") -> Member:
    """Make a user a member of a workspace, or change the role of one who is."""
    if role not in ROLES:
        raise WrongValue(f"{role!r} is no role; a role is one of {', '.join(ROLES)}")
    member = session.get(Member, (workspace.id, user.id))
    if member is None:
        member = Member(workspace_id=workspace.id, user_id=user.id, role=role)
        session.add(member)
    member.role = role
    session.flush()
    return member


def members_of(session: Session, workspace_id: str) -> list[tuple[User, str]]:
    """Return the members of a workspace with their roles, by name."""
    query = select(User, Member.role).join(Member, Member.user_id == User.id)
    found = session.execute(query.where(Member.workspace_id == workspace_id).order_by(User.name))
    return [(user, role) for user, role in found]


def remove_member(session: Session, workspace_id: str, user_id: str) -> None:
    """Take a member out of a workspace, and revoke their tokens for it."""
    theirs = (Token.workspace_id == workspace_id, Token.user_id == user_id)
    serving = update(Token).where(*theirs, Token.revoked_at.is_(None))
    session.execute(serving.values(revoked_at=now()))
    session.execute(
        delete(Member).where(Member.workspace_id == workspace_id, Member.user_id == user_id)
    )


def find_user(session: Session, name: str) -> User:
    """Return the user of a name; raise AccountError without one."""
    user = session.scalar(select(User).where(User.name == name, User.removed_at.is_(None)))
    if user is None:
        raise AccountError(f"there is no user {name!r}; add one with `osmosis platform user add`")
    return user


def find_workspace(session: Session, name: str) -> Workspace:
    """Return the workspace of a name; raise AccountError without one."""
    workspace = session.scalar(select(Workspace).where(Workspace.name == name))
    if workspace is None:
        message = "add one with `osmosis platform workspace add`"
        raise AccountError(f"there is no workspace {name!r}; {message}")
    return workspace


def workspaces_of(session: Session, user_id: str) -> list[tuple[Workspace, str]]:
    """Return the workspaces of a user with the role in each, by name."""
    query = select(Workspace, Member.role).join(Member, Member.workspace_id == Workspace.id)
    found = session.execute(query.where(Member.user_id == user_id).order_by(Workspace.name))
    return [(workspace, role) for workspace, role in found]


def choose_workspace(session: Session, user: User, name: str | None) -> Workspace:
    """Return the workspace of a user by its name, or the only one; raise AccountError otherwise."""
    mine = {workspace.name: workspace for workspace, _ in workspaces_of(session, user.id)}
    if name is not None and name in mine:
        return mine[name]
    add = "add one with `osmosis platform member add`"
    if name is not None:
        raise AccountError(f"{user.name} is no member of a workspace {name!r}; {add}")
    if not mine:
        raise AccountError(f"{user.name} is a member of no workspace; {add}")
    if len(mine) > 1:
        raise AccountError(f"{user.name} is in {', '.join(mine)}; choose one with --workspace")
    return next(iter(mine.values()))


def remove_user(session: Session, user: User) -> None:
    """Remove a user with what is theirs alone: logins, tokens, memberships and own secrets.

    One who has created something is still named there, so the row stays: without a password, and
    under a name that a new user may have again.
    """
    session.refresh(user, with_for_update=True)
    browsers.end_all(session, user.id)
    for table, owner in (
        (Token, Token.user_id),
        (DeviceGrant, DeviceGrant.user_id),
        (Member, Member.user_id),
        (RolloutServer, RolloutServer.user_id),
        (StoredSecret, StoredSecret.owner),
    ):
        session.execute(delete(table).where(owner == user.id))
    user.name = _free_name(session, user.name)
    user.email = user.password_hash = None
    user.removed_at = now()


def _free_name(session: Session, name: str) -> str:
    """Return a name that no user can be given: it has a bracket."""
    count, found = 1, f"{name} (removed)"
    while session.scalar(select(User.id).where(User.name == found)) is not None:
        count += 1
        found = f"{name} (removed {count})"
    return found


def close_workspace(session: Session, workspace_id: str) -> None:
    """Let no one reach a workspace; until the transaction ends, it gets no run either."""
    session.get(Workspace, workspace_id, with_for_update=True)
    for table, place in (
        (Token, Token.workspace_id),
        (DeviceGrant, DeviceGrant.workspace_id),
        (Member, Member.workspace_id),
    ):
        session.execute(delete(table).where(place == workspace_id))


def remove_workspace(session: Session, workspace_id: str) -> None:
    """Remove a closed workspace without runs, with its datasets and secrets."""
    for table, place in (
        (Dataset, Dataset.workspace_id),
        (StoredSecret, StoredSecret.workspace_id),
        (RolloutServer, RolloutServer.workspace_id),
        (Workspace, Workspace.id),
    ):
        session.execute(delete(table).where(place == workspace_id))


def is_repository(text: str) -> bool:
    """Return whether it is `owner/repo`, in lower case."""
    return bool(_REPOSITORY.fullmatch(text)) and text.partition("/")[2] not in (".", "..")


def is_name(text: str) -> bool:
    """Return whether a user or a workspace can have this name."""
    return bool(_NAME.fullmatch(text))


def _check_name(name: str, whose: str) -> None:
    if not is_name(name):
        raise WrongValue(
            f"the name of {whose} has up to 63 letters, digits, dots, dashes and underscores, "
            f"and starts with a letter or a digit"
        )


_SCP = re.compile(
    r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![/:-])[^\s:][^\s]*"
)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:]+")
_USER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")


class CloneUrlError(Exception):
    """A URL that is not cloned from; a sentence that does not repeat it: it may hold a password."""


def check_clone_url(text: str) -> str:
    """Return the URL; raise CloneUrlError for one that is no https, no ssh and no folder."""
    if not text.isprintable() or any(c.isspace() for c in text) or text.startswith("-"):
        raise CloneUrlError("must be one https or ssh URL, or the path of a folder")
    if text.startswith("/"):
        return _folder(text)
    if "::" not in text and _SCP.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        host, user, password, _ = parts.hostname, parts.username, parts.password, parts.port
    except ValueError:
        raise CloneUrlError("cannot be read as a URL") from None
    if parts.scheme == "file":
        return _folder(parts.path)
    if parts.scheme not in ("https", "ssh"):
        raise CloneUrlError("must start with https:// or ssh://, or be the path of a folder")
    if host is None or not _HOST.fullmatch(host):
        raise CloneUrlError("must name a host")
    if password is not None or (user is not None and parts.scheme == "https"):
        raise CloneUrlError("must hold no user and no password; give git a credential helper")
    if (user is not None and not _USER.fullmatch(user)) or parts.path.startswith("/-"):
        raise CloneUrlError("has a name that ssh or git would take for an option")
    return text


def _folder(text: str) -> str:
    path = Path(text)
    if not path.is_absolute() or not path.is_dir():
        raise CloneUrlError("there is no such folder")
    if not (path / ".git").exists() and not (path / "objects").is_dir():
        raise CloneUrlError("the folder is no Git repository, bare or with a work tree")
    return str(path)


def user_documents(session: Session) -> Iterator[dict[str, Any]]:
    """Yield a document of each user, by name; `tokens` counts those that serve."""
    query = select(User).where(User.removed_at.is_(None)).order_by(User.name)
    for user in session.scalars(query).all():
        serving = (Token.revoked_at.is_(None), Token.expires_at > now())
        mine = workspaces_of(session, user.id)
        yield {
            "id": user.id,
            "name": user.name,
            "email": user.email,
            "has_password": user.password_hash is not None,
            "workspaces": [{"name": workspace.name, "role": role} for workspace, role in mine],
            "tokens": count(session, Token.user_id == user.id, *serving),
            "created_at": timestamp(user.created_at),
        }


def workspace_documents(session: Session) -> Iterator[dict[str, Any]]:
    """Yield a document of each workspace, by name."""
    for each in session.scalars(select(Workspace).order_by(Workspace.name)).all():
        yield {
            "id": each.id,
            "name": each.name,
            "repository": each.repository,
            "clone_url": each.clone_url,
            "members": count(session, Member.workspace_id == each.id),
            "runs": count(session, Run.workspace_id == each.id),
            "created_at": timestamp(each.created_at),
        }
