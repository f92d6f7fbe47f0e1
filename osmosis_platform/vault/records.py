"""Secrets in the database: setting, listing and deleting them, and which names a run finds.

A user's own secret is found before the workspace's. `resolve` alone returns values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from osmosis_ai.secret import Secret

from ..database.connection import count
from ..database.models import StoredSecret
from ..errors import Refused
from .cipher import Vault

WORKSPACE = ""
"""The owner of secrets that are the workspace's."""
SCOPES = ("user", "workspace")


def owner_of(scope: str, user_id: str) -> str:
    """Return who owns the secrets of a scope."""
    return user_id if scope == "user" else WORKSPACE


def store(
    session: Session,
    vault: Vault,
    workspace_id: str,
    user_id: str,
    *,
    scope: str,
    name: str,
    value: str,
    limit: int,
) -> tuple[StoredSecret, bool]:
    """Store a secret, in place of one of the same name and scope; and whether it is new."""
    secret = _find(session, workspace_id, owner_of(scope, user_id), name)
    if secret is None and count(session, StoredSecret.workspace_id == workspace_id) >= limit:
        raise Refused(409, "too_many", f"the workspace has {limit} secrets, which is the limit")
    is_new = secret is None
    if secret is None:
        secret = StoredSecret(workspace_id=workspace_id, owner=owner_of(scope, user_id), name=name)
        session.add(secret)
    secret.encrypted = vault.encrypt(value)
    secret.creator_id = user_id
    session.flush()
    return secret, is_new


def delete(session: Session, workspace_id: str, user_id: str, *, scope: str, name: str) -> str:
    """Delete a secret and return its id."""
    secret = _find(session, workspace_id, owner_of(scope, user_id), name)
    if secret is None:
        whose = "you have" if scope == "user" else "the workspace has"
        raise Refused(404, "not_found", f"{whose} no secret of this name", field="name")
    session.delete(secret)
    return secret.id


def visible(
    session: Session,
    workspace_id: str,
    user_id: str,
    scopes: Iterable[str],
    *,
    limit: int,
    offset: int,
) -> tuple[Sequence[StoredSecret], int]:
    """Return some of the secrets that a user sees in a workspace, by name, and their number."""
    owners = [owner_of(scope, user_id) for scope in scopes]
    ours = (StoredSecret.workspace_id == workspace_id) & StoredSecret.owner.in_(owners)
    query = select(StoredSecret).where(ours).order_by(StoredSecret.name, StoredSecret.owner)
    return session.scalars(query.limit(limit).offset(offset)).all(), count(session, ours)


def missing(session: Session, workspace_id: str, user_id: str, names: Iterable[str]) -> list[str]:
    """Return the names that neither the user nor the workspace has a secret of."""
    query = select(StoredSecret.name).where(
        StoredSecret.workspace_id == workspace_id,
        StoredSecret.owner.in_([WORKSPACE, user_id]),
    )
    known = set(session.scalars(query))
    return [name for name in names if name not in known]


def resolve(
    session: Session, vault: Vault, workspace_id: str, user_id: str, names: Iterable[str]
) -> tuple[list[Secret], list[str]]:
    """Return the secrets of these names as a run of the user finds them, and what is missing."""
    found, absent = [], []
    for name in names:
        stored = _find(session, workspace_id, user_id, name) or _find(
            session, workspace_id, WORKSPACE, name
        )
        if stored is None:
            absent.append(name)
        else:
            found.append(Secret(vault.decrypt(stored.encrypted), name))
    return found, absent


def has_secrets(session: Session) -> bool:
    """Return whether anything is stored that needs the key."""
    return session.scalar(select(StoredSecret.id).limit(1)) is not None


def check_key(session: Session, vault: Vault) -> None:
    """Raise KeyProblem when the stored secrets cannot be decrypted."""
    stored = session.scalar(select(StoredSecret.encrypted).limit(1))
    if stored is not None:
        vault.decrypt(stored)


def _find(session: Session, workspace_id: str, owner: str, name: str) -> StoredSecret | None:
    return session.scalar(
        select(StoredSecret).where(
            StoredSecret.workspace_id == workspace_id,
            StoredSecret.owner == owner,
            StoredSecret.name == name,
        )
    )
