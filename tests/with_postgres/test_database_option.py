"""`osmosis platform ... --database URL`, with a real PostgreSQL behind it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import httpx
import pytest

from osmosis_platform.database.connection import FILE_NAME
from osmosis_platform.database.schema import upgrade
from tests.support.platform_database import begin_next_version, connected, server
from tests.with_postgres.conftest import PASSWORD, Access

Command = Callable[..., tuple[int, str, str]]
ADD = ("platform", "user", "add", "--no-password", "ann")


def test_accounts_are_kept_in_postgresql_and_no_sqlite_is_made(
    osmosis: Command, access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = ("--data", str(tmp_path), "--database", access.url)
    assert osmosis(*ADD, *place)[0] == 0
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE", access.with_password)
    assert "there is a user 'ann' already" in osmosis(*ADD)[2]
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    file = ("--database-password-file", str(tmp_path / "password"))
    assert "there is a user 'ann' already" in osmosis(*ADD, *place, *file)[2]
    assert not (tmp_path / FILE_NAME).exists()


def test_a_database_of_another_version_is_refused_until_it_is_upgraded(
    osmosis: Command, access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    database = connected(access.url)
    upgrade(database)
    older = begin_next_version(monkeypatch, tmp_path)
    place = ("--data", str(tmp_path), "--database", access.url)
    for words in (("platform", "serve", "--port", "0"), ADD):
        status, out, err = osmosis(*words, *place)
        assert (status, out) == (1, "")
        assert f"at revision {older}, and this version needs 9998" in err
    status, out, _ = osmosis("platform", "db", "upgrade", *place, "--json")
    assert (status, json.loads(out)) == (0, {"before": older, "revision": "9998"})
    assert "already" in osmosis("platform", "db", "upgrade", *place)[1]
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    assert "of a newer version" in osmosis("platform", "db", "upgrade", *place)[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("/platform", "/absent"), 'database "absent'),
        (("osmosis@", "nobody@"), 'role "nobody" does not exist'),
        (("host=/", "host=/nowhere/"), "connection is bad"),
    ],
)
def test_a_database_that_cannot_be_reached_is_one_sentence(
    osmosis: Command, access: Access, tmp_path: Path, change: tuple[str, str], message: str
):
    url = access.url.replace(*change)
    status, out, err = osmosis(*ADD, "--data", str(tmp_path), "--database", url)
    assert (status, out, len(err.strip().splitlines())) == (1, "", 1)
    assert message in err


def test_a_served_platform_shows_the_password_in_no_argument_and_no_output(
    access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE", access.with_password)
    words = ["platform", "serve", "--port", "0", "--data", str(tmp_path), "--json"]
    command = [sys.executable, "-m", "osmosis_cli", *words]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE) as served:
        assert served.stdout is not None
        first = served.stdout.readline()
        url = json.loads(first)["url"]
        assert httpx.get(f"{url}/login", trust_env=False, timeout=60).status_code == 200
        arguments = Path(f"/proc/{served.pid}/cmdline").read_bytes()
        served.send_signal(signal.SIGTERM)
        rest, errors = served.communicate(timeout=60)
    assert PASSWORD.encode() not in first + rest + errors + arguments


def test_a_server_that_was_started_anew_is_connected_to_again():
    database = connected(server().create())
    with database.reading() as session:
        (pid,) = session.connection().exec_driver_sql("SELECT pg_backend_pid()").one()
    other = connected(server().uri)
    with other.writing() as session:
        session.connection().exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
    other.close()
    with database.reading() as session:
        session.connection().exec_driver_sql("SELECT 1")
    database.close()
