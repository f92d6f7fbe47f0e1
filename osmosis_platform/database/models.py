"""The tables.

    User ─┬─ Member ── Workspace ─┬─ Dataset
          ├─ Token                ├─ Run ── RunLog
          ├─ BrowserSession       ├─ StoredSecret
          └─ DeviceGrant          └─ RolloutServer

Ids are random. Tokens, codes and cookies are kept as digests, secrets encrypted.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from ..identifiers import new_id


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(timezone.utc)


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC; SQLite keeps no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store in UTC."""
        return None if value is None else value.astimezone(timezone.utc)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give what was stored its time zone."""
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=timezone.utc)


class Base(DeclarativeBase):
    """What all tables have in common."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        str: String(255),
    }


class User(Base):
    """A person with an account."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str | None]
    password_hash: Mapped[str | None]
    """None for a user who only has tokens."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    removed_at: Mapped[datetime | None]
    """A removed user is kept by name for what they have created; the name is then another one."""


class Workspace(Base):
    """A repository with its members and what belongs to them together."""

    __tablename__ = "workspaces"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(unique=True)
    repository: Mapped[str] = mapped_column(unique=True)
    """`owner/repo`, in lower case."""
    clone_url: Mapped[str | None] = mapped_column(Text)
    """Where it is cloned from, when not from GitHub; only the operator sets it."""
    created_at: Mapped[datetime] = mapped_column(default=now)


class Member(Base):
    """That a user belongs to a workspace, and as what."""

    __tablename__ = "members"

    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(String(16))
    user: Mapped[User] = relationship()
    workspace: Mapped[Workspace] = relationship()


class Token(Base):
    """A key to the API for one user in one workspace."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    workspace_id: Mapped[str | None] = mapped_column(ForeignKey("workspaces.id"))
    label: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    """Within the hour; None for one that was never used."""
    user: Mapped[User] = relationship()
    workspace: Mapped[Workspace | None] = relationship()


class DeviceGrant(Base):
    """A device that waits for a user to confirm its login."""

    __tablename__ = "device_grants"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    device_digest: Mapped[str] = mapped_column(String(64), unique=True)
    user_code: Mapped[str] = mapped_column(String(16), unique=True)
    device_name: Mapped[str]
    status: Mapped[str] = mapped_column(String(16), default="pending")
    """`pending`, `approved`, `denied`, or `used`."""
    interval_s: Mapped[int]
    polled_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime]
    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id"))
    workspace_id: Mapped[str | None] = mapped_column(ForeignKey("workspaces.id"))


class BrowserSession(Base):
    """A browser in which a user is logged in."""

    __tablename__ = "browser_sessions"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    expires_at: Mapped[datetime]
    user: Mapped[User] = relationship()


class LoginAttempts(Base):
    """How often a login was tried under names of one digest."""

    __tablename__ = "login_attempts"

    key: Mapped[str] = mapped_column(String(16), primary_key=True)
    since: Mapped[datetime]
    count: Mapped[int]


class Dataset(Base):
    """A file of rows that runs use."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"), index=True)
    creator_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    file_name: Mapped[str]
    extension: Mapped[str] = mapped_column(String(16))
    file_size: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(16), default="uploading")
    """`uploading`, `ready`, `failed`, or `deleted`."""
    row_count: Mapped[int | None]
    error: Mapped[str | None] = mapped_column(Text)
    """Why it failed."""
    part_size: Mapped[int | None]
    """None for an upload in one piece."""
    created_at: Mapped[datetime] = mapped_column(default=now)
    creator: Mapped[User] = relationship()


class Run(Base):
    """A submitted evaluation or training run."""

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("workspace_id", "name"),
        UniqueConstraint("workspace_id", "creator_id", "kind", "idempotency_key"),
        Index("ix_runs_workspace_id", "workspace_id", "kind", "created_at", "status"),
        Index(
            "ix_runs_under_way",
            "created_at",
            sqlite_where=text("completed_at IS NULL"),
            postgresql_where=text("completed_at IS NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))
    creator_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str] = mapped_column(String(16))
    """`evaluation` or `training`."""
    name: Mapped[str]
    status: Mapped[str] = mapped_column(String(16), default="pending")
    created_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    """None while it is under way: an index has these runs alone."""
    submission: Mapped[dict[str, Any]]
    """The body of the request, as it was accepted."""
    submission_digest: Mapped[str] = mapped_column(String(64))
    idempotency_key: Mapped[str | None]
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"))
    results: Mapped[dict[str, Any] | None]
    metrics: Mapped[dict[str, Any] | None]
    """`overview`, `reward_stats` and `pass_at_k`, as far as they are known."""
    report: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    executed_by: Mapped[str | None] = mapped_column(String(32))
    """The id of the scheduler that executes it; None where it was handed over."""
    lease_until: Mapped[datetime | None]
    """Until when no other one takes it: that scheduler puts this off as long as it lives."""
    interruptions: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    """How often a scheduler that executed it was gone without having handed it over."""
    creator: Mapped[User] = relationship()
    dataset: Mapped[Dataset] = relationship()


class LogLine(Base):
    """One line of a run's log."""

    __tablename__ = "run_logs"

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), index=True)
    timestamp: Mapped[datetime] = mapped_column(default=now)
    level: Mapped[str] = mapped_column(String(16), default="info")
    step: Mapped[str | None]
    message: Mapped[str] = mapped_column(Text)
    details: Mapped[dict[str, Any] | None]


class StoredSecret(Base):
    """A secret of a user in a workspace, or of the workspace."""

    __tablename__ = "secrets"
    __table_args__ = (UniqueConstraint("workspace_id", "owner", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    workspace_id: Mapped[str] = mapped_column(ForeignKey("workspaces.id"))
    owner: Mapped[str] = mapped_column(String(32))
    """The id of the user that it is for; empty for the workspace's."""
    creator_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str]
    encrypted: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    creator: Mapped[User] = relationship()


class RolloutServer(Base):
    """A server of rollouts that registered itself."""

    __tablename__ = "rollout_servers"
    __table_args__ = (UniqueConstraint("user_id", "workspace_id", "host", "port"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    workspace_id: Mapped[str | None] = mapped_column(ForeignKey("workspaces.id"))
    host: Mapped[str]
    port: Mapped[int]
    agent_loop_name: Mapped[str]
    encrypted_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    status: Mapped[str] = mapped_column(String(16), default="registered")
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
