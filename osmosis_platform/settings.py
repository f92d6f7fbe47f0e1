"""What an operator may set, and the limits that hold otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How much of everything there may be."""

    body_bytes: int = 2 * MIB
    """Of a JSON body; a config's [env] and [advanced] are in it."""
    form_bytes: int = 256 * 1024
    """A secret takes up to three times its size there."""
    body_timeout_s: float = 30.0
    """How long the body of a request, but for an upload, may take to arrive."""
    upload_pause_s: float = 60.0
    """How long an upload may send nothing."""
    dataset_bytes: int = 5 * 1024 * MIB
    import_bytes: int = 288 * MIB
    """Of an evaluation that ran elsewhere: its report and its conversations."""
    datasets: int = 1000
    """In a workspace."""
    part_bytes: int = 16 * MIB
    """Of each part of a multipart upload but the last."""
    simple_upload_bytes: int = 16 * MIB
    """A larger dataset arrives in parts."""
    upload_expires_s: int = 3600
    """How long the URLs of an upload serve."""
    runs: int = 1000
    """Of a user that have not ended."""
    evaluation_runs: int = 1_000_000
    """Rows times `n` of one evaluation; each takes some memory from the start."""
    secret_bytes: int = 64 * 1024
    secrets: int = 1000
    """In a workspace."""
    failed_logins: int = 10
    """Of a user in ten minutes."""
    device_logins: int = 30
    """That a client begins in ten minutes."""
    device_code_expires_s: int = 600
    device_interval_s: int = 5
    token_expires_s: int = 90 * 24 * 3600
    session_expires_s: int = 12 * 3600


@dataclass(frozen=True, slots=True)
class Settings:
    """How one platform is run."""

    data: Path
    """The folder of the database, the datasets and, unless the environment has it, the key."""
    public_url: str | None = None
    """Where browsers and clients reach the platform; by default where a request came to."""
    allowed_hosts: frozenset[str] = LOOPBACK
    """The names in `Host` headers that are answered."""
    oldest_client: tuple[int, ...] = (0, 1)
    """The lowest version of the `osmosis` command that is served."""
    has_trainer: bool = False
    """Whether training runs are executed; else they are refused."""
    limits: ServerLimits = ServerLimits()
