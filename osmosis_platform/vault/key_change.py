"""A new key for all that is encrypted.

The old key is in the key file beside the new one until the last value has the new one. So all can
be read whenever this is ended, and the next change completes it. Knows no command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet
from sqlalchemy import select, update

from pytest_osmosis.storage.atomic_write import write_whole

from ..database.connection import Database
from ..database.models import RolloutServer, StoredSecret
from ..locks import locked, locked_if_free
from .cipher import FILE_NAME, KeyProblem, Vault, read_keys

_LOCK = "serving.lock"
"""The processes that serve hold it together: one with the old key would store what none can read"""


@contextmanager
def serving(data: Path) -> Iterator[None]:
    """Keep the key as it is; KeyProblem while it is changed."""

    def refuse() -> None:
        raise KeyProblem(f"{data / FILE_NAME} is being changed: start again when that is done")

    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(data / _LOCK, alone=False, check=refuse):
        yield


def is_served(data: Path) -> bool:
    """Return whether a process serves the platform of a folder."""
    if not data.is_dir():
        return False
    with locked_if_free(data / _LOCK) as is_free:
        return not is_free


def change_key(database: Database, data: Path, keys: str | None) -> int:
    """Encrypt all by a new key, which replaces that of the file; return how many values there were.

    With `keys`, those of the environment, all is encrypted by the first of them, and no file
    changes.

    Raises:
        KeyProblem: when a value has another key, or the platform is served.
    """
    with locked_if_free(data / _LOCK) as is_free:
        if not is_free:
            raise KeyProblem("the platform is served, or its key is being changed: end that first")
        return _encrypt_all(database, Vault(keys)) if keys else _replace(database, data)


def _replace(database: Database, data: Path) -> int:
    path = data / FILE_NAME
    old, new = read_keys(path), Fernet.generate_key().decode("ascii")
    write_whole(path, f"{new}\n{old}".encode("ascii"), mode=0o600)
    try:
        count = _encrypt_all(database, Vault(f"{new} {old}"))
    except KeyProblem:
        write_whole(path, old.encode("ascii"), mode=0o600)
        raise
    write_whole(path, new.encode("ascii"), mode=0o600)
    return count


def _encrypt_all(database: Database, vault: Vault) -> int:
    count = 0
    with database.writing() as session:
        for kept, column in (
            (StoredSecret, StoredSecret.encrypted),
            (RolloutServer, RolloutServer.encrypted_key),
        ):
            for number in session.scalars(select(kept.id).where(column.is_not(None))).all():
                stored = session.scalar(select(column).where(kept.id == number))
                if stored is None:
                    continue
                values = {column: vault.rotate(stored), kept.updated_at: kept.updated_at}
                session.execute(update(kept).where(kept.id == number).values(values))
                count += 1
    return count
