"""The check of an upload: what is read of a file, within which limits, and who waits for it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osmosis_executors.job import MIB
from osmosis_platform import limited
from osmosis_platform.database.connection import Database
from osmosis_platform.database.schema import upgrade
from osmosis_platform.datasets import checks
from osmosis_platform.datasets.checks import DatasetChecks, NoDataset
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.osmosis_platform.execution.test_end_to_end import served, until
from tests.osmosis_platform.test_datasets import DATASETS, ROW, create, finish, put
from tests.support.platform_server import PlatformServer

WAITS = """
import sys, time
from pathlib import Path
from osmosis_platform.datasets import row_check

path = Path(sys.argv[1])
if b"waits" in path.read_bytes():
    path.with_name("begun").touch()
    while path.exists() and not path.with_name("gate").exists():
        time.sleep(0.02)
row_check.main(*sys.argv[1:])
"""
Begun = tuple[dict[str, Any], Path, Future[httpx.Response]]
"""A dataset whose check is under way, its folder, and the answer to come."""
LATER = ROW.replace(b'"a"', b'"it waits"')


def counted(folder: Path, content: bytes, name: str = "jsonl") -> int | None:
    files = DatasetFiles(folder, "dataset", name)
    files.folder.mkdir(parents=True, exist_ok=True)
    files.rows.write_bytes(content)
    try:
        return DatasetChecks().count_rows(files)
    finally:
        files.rows.unlink()
        assert [*files.folder.iterdir()] == []


def test_the_first_rows_are_checked_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checks, "ROWS", 1)
    assert counted(tmp_path, ROW + b"not json\n") == 2
    assert counted(tmp_path, b"system_prompt,user_prompt\na,b\n,\n,\n", "csv") == 3
    with pytest.raises(NoDataset, match=r"rows\.jsonl:1: not JSON"):
        counted(tmp_path, b"not json\n" + ROW)


def test_rows_of_which_only_some_have_a_task_are_refused(tmp_path: Path):
    text = b'metadata,user_prompt\n"{""a"": 1}",q\n{},q\n'
    with pytest.raises(NoDataset, match="'metadata' is no object with something in it in line 3"):
        counted(tmp_path, text, "csv")
    with pytest.raises(NoDataset, match=r"rows\.csv:3: 'metadata' is an empty object; a row"):
        counted(tmp_path, b'metadata,label\n"{""a"": 1}",q\n{},\n', "csv")


def wide_json() -> bytes:
    return b"[" + b" " * 60 * MIB + ROW + b"]"


def long_csv() -> bytes:
    return b"system_prompt,user_prompt\n" + b"a,b\n" * 50


def parquet(rows: int = 1000, numbers: int = 1) -> bytes:
    """A small file of many rows with lists of numbers."""
    table = pa.table(
        {
            "system_prompt": [""] * 1000,
            "user_prompt": ["a"] * 1000,
            "numbers": [[1] * numbers] * 1000,
        }
    )
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema) as writer:
        for _ in range(rows // 1000):
            writer.write_table(table)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "limits", "rows", "known"),
    [
        pytest.param(
            "json", wide_json, {"memory_bytes": 100 * MIB}, 1, None, marks=pytest.mark.slow
        ),
        ("csv", long_csv, {"file_bytes": 1000}, 50, None),
        pytest.param("parquet", parquet, {"file_bytes": 1000}, 1000, 1000, marks=pytest.mark.slow),
    ],
)
def test_what_the_limits_do_not_allow_to_check_is_taken_unchecked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: Callable[[], bytes],
    limits: dict[str, int],
    rows: int,
    known: int | None,
):
    assert counted(tmp_path, content(), name) == rows
    monkeypatch.setattr(checks, "LIMITS", replace(checks.LIMITS, **limits))
    assert counted(tmp_path, content(), name) == known


def test_a_check_that_takes_too_long_is_ended_and_one_that_breaks_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(checks, "_PROGRAM", ("-c", "raise SystemExit('it broke')"))
    assert counted(tmp_path, ROW) is None
    assert "dataset dataset is not checked: exit status 1: it broke" in caplog.text
    monkeypatch.setattr(checks, "_PROGRAM", ("-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(checks, "TIME_S", 0.0)
    assert counted(tmp_path, ROW) is None


@pytest.fixture
def requests() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


@pytest.fixture
def begun(
    client: httpx.Client,
    platform_server: PlatformServer,
    requests: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> Begun:
    """An upload whose check is under way."""
    monkeypatch.setattr(checks, "_PROGRAM", ("-c", WAITS))
    dataset = create(client, LATER)
    put(dataset["upload"]["presigned_url"], LATER)
    answer = requests.submit(finish, client, dataset)
    folder = platform_server.settings.data / "datasets" / dataset["id"]
    until((folder / "begun").exists, answer.done)
    return dataset, folder, answer


def test_others_upload_while_a_check_takes_long_and_its_own_workspace_waits(
    platform_server: PlatformServer,
    begun: Begun,
    client: httpx.Client,
    owner: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
):
    _, folder, answer = begun
    monkeypatch.setattr(limited, "WAIT_S", 0.0)
    for asks, status in ((client, 503), (owner, 200)):
        other = create(asks, ROW)
        put(other["upload"]["presigned_url"], ROW)
        assert finish(asks, other).status_code == status
    assert not answer.done()
    (folder / "gate").touch()
    assert answer.result().json()["status"] == "ready"


def test_a_check_ends_with_the_platform_and_is_done_when_asked_for_again(
    platform_server: PlatformServer,
    begun: Begun,
    client: httpx.Client,
):
    dataset, folder, answer = begun
    platform_server.checks.closing.set()
    try:
        assert (answer.result().status_code, answer.result().json()["code"]) == (503, "busy")
    finally:
        platform_server.checks.closing.clear()
    (folder / "gate").touch()
    assert finish(client, dataset).json()["status"] == "ready"


def test_an_upload_that_is_aborted_while_it_is_checked_is_gone(begun: Begun, client: httpx.Client):
    dataset, folder, answer = begun
    assert client.post(f"{DATASETS}/{dataset['id']}/abort").status_code == 200
    assert answer.result().json()["code"] == "upload_ended"
    assert not folder.exists()


@pytest.mark.slow
def test_a_platform_ends_while_it_checks_a_small_file_that_makes_much_work(
    requests: ThreadPoolExecutor, tmp_path: Path
):
    content = parquet(100_000, numbers=200)
    data = tmp_path / "data"
    database = Database.in_folder(data)
    upgrade(database)
    account = PlatformServer("", database, Settings(data), open_vault(data, None)).account
    with (
        served(data) as (url, process),
        httpx.Client(base_url=url, headers=account.headers, timeout=600) as client,
    ):
        dataset = create(client, content, "rows.parquet")
        put(dataset["upload"]["presigned_url"], content)
        answer = requests.submit(finish, client, dataset)
        folder = data / "datasets" / dataset["id"]
        until(lambda: any(folder.glob("printed-*")), answer.done)
        process.terminate()
        assert process.wait(60) == 143
        assert answer.result().status_code == 503
    assert not any(folder.glob("printed-*"))
    database.close()
