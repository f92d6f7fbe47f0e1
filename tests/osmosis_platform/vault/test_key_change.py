"""Another key for the stored secrets: all of them, whenever it is ended, and never while served."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import select

from osmosis_platform.database.models import RolloutServer, StoredSecret
from osmosis_platform.locks import locked_if_free
from osmosis_platform.settings import Settings
from osmosis_platform.vault import key_change
from osmosis_platform.vault.cipher import KeyProblem, Vault, open_vault
from osmosis_platform.vault.key_change import change_key, serving
from tests.support.platform_database import is_postgres, new_database
from tests.support.platform_server import PlatformServer

VALUES = {"A": "sk-value-a", "B": "sk-value-b", "server": "sk-value-of-a-server"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformServer]:
    """A platform that is not served, with secrets and a rollout server's key."""
    database = new_database(tmp_path)
    vault = open_vault(tmp_path, None)
    platform = PlatformServer("", database, Settings(data=tmp_path), vault)
    for name in ("A", "B"):
        platform.add_secret(name, value=VALUES[name])
    with database.writing() as session:
        session.add(
            RolloutServer(
                user_id=platform.account.user_id,
                host="10.0.0.1",
                port=9000,
                agent_loop_name="a",
                encrypted_key=vault.encrypt(VALUES["server"]),
            )
        )
    yield platform
    database.close()


def values(platform: PlatformServer, vault: Vault) -> dict[str, str]:
    """All that is stored, decrypted."""
    with platform.database.reading() as session:
        found = {each.name: each.encrypted for each in session.scalars(select(StoredSecret))}
        found["server"] = session.scalars(select(RolloutServer.encrypted_key)).one()
    return {name: vault.decrypt(stored) for name, stored in found.items()}


def keys(platform: PlatformServer) -> list[str]:
    return (platform.settings.data / "secret.key").read_text().split()


def test_a_new_key_encrypts_everything_and_the_old_one_nothing(platform: PlatformServer) -> None:
    data = platform.settings.data
    [old] = keys(platform)
    with platform.database.reading() as session:
        before = session.scalars(select(StoredSecret.updated_at)).all()
    assert change_key(platform.database, data, None) == 3
    [new] = keys(platform)
    assert new != old
    assert stat.S_IMODE((data / "secret.key").stat().st_mode) == 0o600
    assert values(platform, open_vault(data, None)) == VALUES
    with pytest.raises(KeyProblem, match="encrypted with another key"):
        values(platform, Vault(old))
    with platform.database.reading() as session:
        assert session.scalars(select(StoredSecret.updated_at)).all() == before


def test_a_value_of_an_unknown_key_leaves_all_as_it_was(platform: PlatformServer) -> None:
    before = keys(platform)
    with platform.database.writing() as session:
        first = session.scalars(select(StoredSecret)).first()
        assert first is not None
        first.encrypted = Fernet(Fernet.generate_key()).encrypt(b"x")
    with pytest.raises(KeyProblem, match="encrypted with another key"):
        change_key(platform.database, platform.settings.data, None)
    assert keys(platform) == before


def test_the_first_key_of_the_environment_replaces_the_others(platform: PlatformServer) -> None:
    [old] = before = keys(platform)
    new = Fernet.generate_key().decode()
    assert change_key(platform.database, platform.settings.data, f"{new} {old}") == 3
    assert values(platform, Vault(new)) == VALUES
    assert keys(platform) == before


def test_no_key_changes_while_the_platform_is_served_and_the_reverse(
    platform: PlatformServer,
) -> None:
    data = platform.settings.data
    with serving(data), serving(data), pytest.raises(KeyProblem, match="the platform is served"):
        change_key(platform.database, data, None)
    with (
        locked_if_free(data / key_change._LOCK),
        pytest.raises(KeyProblem, match="is being changed"),
        serving(data),
    ):
        pass


KILLED = """
import os, signal, sys
from pathlib import Path
from osmosis_platform.database.connection import Database
from osmosis_platform.vault import key_change
from osmosis_platform.vault.cipher import Vault

where, calls = sys.argv[1], []

def dies(function, at):
    def called(*args, **named):
        calls.append(1)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **named)
    return called

if where == "before the last value":
    Vault.rotate = dies(Vault.rotate, 3)
else:
    key_change.write_whole = dies(key_change.write_whole, 2)
data = Path(sys.argv[2])
key_change.change_key(Database.in_folder(data), data, None)
"""


@pytest.mark.fault("`osmosis platform key change` is killed half-way")
@pytest.mark.slow
@pytest.mark.parametrize("where", ["before the last value", "before the old key is dropped"])
def test_a_change_that_is_killed_loses_nothing_and_the_next_completes_it(
    platform: PlatformServer, where: str
) -> None:
    if is_postgres():
        pytest.skip("the child has SQLite")
    data = platform.settings.data
    [old] = keys(platform)
    words = [sys.executable, "-c", KILLED, where, str(data)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert keys(platform)[1:] == [old]
    assert values(platform, open_vault(data, None)) == VALUES
    assert change_key(platform.database, data, None) == 3
    assert values(platform, open_vault(data, None)) == VALUES
    assert len(keys(platform)) == 1
    with pytest.raises(KeyProblem):
        values(platform, Vault(old))
