"""Users, workspaces and members: adding, changing and finding them by name.

Raises `AccountError`, a sentence for the operator.
"""

from __future__ import annotations

import re

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from ..database.models import Member, Token, User, Workspace, now
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
        told = "add one with `osmosis platform workspace add`"
        raise AccountError(f"there is no workspace {name!r}; {told}")
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


def is_repository(text: str) -> bool:
    """Return whether it is `owner/repo`, in lower case."""
    return bool(_REPOSITORY.fullmatch(text)) and text.partition("/")[2] not in (".", "..")


def _check_name(name: str, whose: str) -> None:
    if not _NAME.fullmatch(name):
        raise WrongValue(
            f"the name of {whose} has up to 63 letters, digits, dots, dashes and underscores, "
            f"and starts with a letter or a digit"
        )
