"""A platform is backed up while it serves, and restored with everything that it had."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from osmosis_platform.backup.archive import BackupProblem, read_backup, write_backup
from osmosis_platform.database.connection import Database
from osmosis_platform.database.models import Base, LogLine, Run, now
from osmosis_platform.database.schema import revision, upgrade
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from osmosis_platform.vault.records import resolve
from tests.support.platform_database import begin_next_version, empty_database, new_database
from tests.support.platform_server import PlatformServer

VALUE = "sk-of-a-secret-0123456789"
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformServer]:
    """A platform with one of everything."""
    data = tmp_path / "data"
    data.mkdir()
    database = new_database(data)
    found = PlatformServer("", database, Settings(data=data), open_vault(data, None))
    dataset_id = found.add_dataset()
    run_id = found.add_run(
        name="one",
        status="running",
        dataset_id=dataset_id,
        results={"commit_sha": "c" * 40},
        metrics={"overview": {"passed": 1}},
        report={"text": "\u20ac", "none": None},
        lease_until=now() - timedelta(seconds=1),
    )
    found.add_run("training", name="two", dataset_id=dataset_id)
    with database.writing() as session:
        session.add_all(
            LogLine(run_id=run_id, message=f"line {number}", details={"number": number})
            for number in range(300)
        )
    found.add_secret("KEY", value=VALUE)
    for place, text in {
        f"datasets/{dataset_id}/rows.jsonl": "rows",
        f"datasets/{dataset_id}/incoming-1": "not whole",
        f"runs/{run_id}/kept/abc/journal.jsonl": "journal",
        f"runs/{run_id}/results/report.json": "report",
        f"runs/{run_id}/output": f"of a run that goes on: {VALUE}",
        f"runs/{run_id}/source/main.py": "a work tree",
        f"runs/{run_id}/commit": "c" * 40,
        "environments/x/complete": "",
    }.items():
        (data / place).parent.mkdir(parents=True, exist_ok=True)
        (data / place).write_text(text)
    (data / f"runs/{run_id}/kept/link").symlink_to("/etc/passwd")
    os.mkfifo(data / f"runs/{run_id}/kept/pipe")
    yield found
    database.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Database]:
    """An empty database in an empty folder."""
    (tmp_path / "other").mkdir()
    database = empty_database(tmp_path / "other")
    yield database
    database.close()


def rows_of(database: Database) -> Rows:
    with database.reading() as session:
        return {
            table.name: sorted(map(tuple, session.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }


def files_of(data: Path) -> dict[str, str]:
    return {
        str(path.relative_to(data)): path.read_text()
        for path in data.rglob("*")
        if path.is_file() and path.suffix != ".sqlite3" and "sqlite3-" not in path.name
    }


def test_a_platform_is_restored_with_all_its_rows_and_the_files_that_are_not_made_again(
    platform: PlatformServer, elsewhere: Database, tmp_path: Path
) -> None:
    data, file = platform.settings.data, tmp_path / "backup.tar.gz"
    made = write_backup(platform.database, data, file, with_key=False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert VALUE.encode() not in b"".join(_contents(file))
    found = read_backup(elsewhere, tmp_path / "other", file)
    assert found == made
    assert rows_of(elsewhere) == rows_of(platform.database)
    names = {name.rpartition("/")[2] for name in files_of(tmp_path / "other")}
    assert names == {"rows.jsonl", "journal.jsonl", "report.json"}
    folders = (path for path in (tmp_path / "other").rglob("*") if path.is_dir())
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    kept = files_of(data)
    assert all(kept[name] == text for name, text in files_of(tmp_path / "other").items())
    run_id = platform.add_run(name="three")  # rows are numbered on behind those restored
    with elsewhere.writing() as session:
        first = session.scalars(select(Run).where(Run.name == "one")).one()
        session.add(LogLine(run_id=first.id, message="the next"))
        assert RunFolder.of_run(tmp_path / "other", first.id).commit is None  # cloned again
    with elsewhere.reading() as session:
        assert session.scalars(select(LogLine).order_by(LogLine.id.desc())).first().run_id != run_id


def test_a_backup_with_its_key_opens_the_secrets(
    platform: PlatformServer, elsewhere: Database, tmp_path: Path
) -> None:
    file, account = tmp_path / "backup.tar.gz", platform.account
    made = write_backup(platform.database, platform.settings.data, file, with_key=True)
    assert made["has_key"]
    read_backup(elsewhere, tmp_path / "other", file)
    vault = open_vault(tmp_path / "other", None)
    with elsewhere.reading() as session:
        (secret,), _ = resolve(session, vault, account.workspace_id, account.user_id, ["KEY"])
    assert secret.reveal() == VALUE


@pytest.mark.slow
def test_the_tables_of_a_backup_are_of_one_moment_while_others_write(
    platform: PlatformServer, elsewhere: Database, tmp_path: Path
) -> None:
    done = threading.Event()

    def write() -> None:
        while not done.is_set():  # a run and its log line come together
            run_id = platform.add_run(dataset_id=dataset_id)
            platform.add_log(run_id, "a line")

    dataset_id = platform.add_dataset()
    writer = threading.Thread(target=write)
    writer.start()
    file = tmp_path / "backup.tar.gz"
    try:
        write_backup(platform.database, platform.settings.data, file, with_key=False)
    finally:
        done.set()
        writer.join()
    read_backup(elsewhere, tmp_path / "other", file)  # a line without its run is refused there
    with elsewhere.reading() as session:
        assert session.scalars(select(LogLine.run_id)).all()


@pytest.mark.slow
def test_what_is_there_already_is_left_alone(
    platform: PlatformServer, elsewhere: Database, tmp_path: Path
) -> None:
    file, data = tmp_path / "backup.tar.gz", platform.settings.data
    write_backup(platform.database, data, file, with_key=False)
    before = file.read_bytes()
    with pytest.raises(BackupProblem, match="is there already"):
        write_backup(platform.database, data, file, with_key=False)
    with pytest.raises(BackupProblem, match="a platform already"):
        read_backup(platform.database, data, file)
    with pytest.raises(BackupProblem, match=r"rows\.jsonl is there already"):
        read_backup(elsewhere, data, file)
    assert file.read_bytes() == before
    (data / "secret.key").unlink()
    with pytest.raises(BackupProblem, match="the key is in the environment"):
        write_backup(platform.database, data, tmp_path / "other.tar.gz", with_key=True)


@pytest.mark.fault("a backup is cut short, or leads out of its folder")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content[: len(content) // 2], "no whole backup"),
        (lambda content: b"no archive", "no whole backup"),
        (lambda content: _damaged(content), "no whole backup"),
        (lambda content: _archive({"x": b""}), "no backup of a platform"),
        (lambda content: _archive({"manifest.json": b'{"format": 99}'}), "newer version"),
        (
            lambda content: _archive(
                {
                    "manifest.json": b'{"format": 1, "revision": "0006"}',
                    "files/datasets/x/rows.jsonl": b"rows",
                    "files/../../x": b"out of the folder",
                }
            ),
            "leads out of the folder",
        ),
    ],
)
def test_what_is_no_backup_is_refused(
    platform: PlatformServer,
    elsewhere: Database,
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    told: str,
) -> None:
    file = tmp_path / "backup.tar.gz"
    write_backup(platform.database, platform.settings.data, file, with_key=False)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(BackupProblem, match=told):
        read_backup(elsewhere, tmp_path / "other", file)
    assert revision(elsewhere) is None
    assert not [*(tmp_path / "other").glob("datasets")]


def _damaged(content: bytes) -> bytes:
    """An archive that is readable but for the header of a file."""
    stored = bytearray(gzip.compress(gzip.decompress(content), compresslevel=0))
    stored[stored.index(b"files/runs/")] ^= 0xFF
    return bytes(stored)


def _archive(contents: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _contents(file: Path) -> Iterator[bytes]:
    with tarfile.open(file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            yield content.read()


def test_the_commands_say_what_they_did_and_what_is_still_to_do(
    platform: PlatformServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from osmosis_cli.errors import run
    from osmosis_cli.main import cli

    if not platform.database.is_sqlite:
        pytest.skip("the commands' database is SQLite here")
    data, other, file = platform.settings.data, tmp_path / "new", tmp_path / "b.tar.gz"
    assert run(cli, ["platform", "backup", str(file), "--data", str(data)]) == 0
    assert "3 files, without the key: keep secret.key safe" in capsys.readouterr().out
    assert run(cli, ["platform", "backup", str(file), "--data", str(data)]) == 1
    assert "b.tar.gz is there already" in capsys.readouterr().err
    assert run(cli, ["platform", "restore", str(file), "--data", str(other), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 3
    assert run(cli, ["platform", "restore", str(file), "--data", str(other)]) == 1
    assert "there is a platform already" in capsys.readouterr().err


def test_tables_of_an_older_version_are_saved_before_they_are_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from osmosis_cli.errors import run
    from osmosis_cli.main import cli

    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "b.tar.gz"
    old.mkdir()
    database = Database.in_folder(old)
    upgrade(database)
    with database.writing() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO users (id, name, created_at) VALUES ('1', 'ann', '2026-01-02 03:04:05')"
        )
    database.close()
    older = begin_next_version(monkeypatch, tmp_path)
    assert run(cli, ["platform", "user", "list", "--data", str(old)]) == 1
    assert "back it up, then run" in capsys.readouterr().err
    assert run(cli, ["platform", "backup", str(file), "--data", str(old), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == older
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(file.read_bytes()[:-300])
    assert run(cli, ["platform", "restore", str(broken), "--data", str(new)]) == 1
    assert "no whole backup" in capsys.readouterr().err
    assert run(cli, ["platform", "restore", str(file), "--data", str(new)]) == 0
    assert run(cli, ["platform", "user", "list", "--data", str(new)]) == 0
    assert "upgraded@example.com" in capsys.readouterr().out
