"""Datasets over HTTP: uploaded in one piece or in parts, checked, counted, listed, aborted."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import httpx
import pytest

from osmosis_platform.database.models import Dataset, now
from osmosis_platform.datasets import files
from osmosis_platform.datasets.uploads import upload_document
from osmosis_platform.errors import Refused
from osmosis_platform.execution import deletion
from osmosis_platform.settings import ServerLimits
from tests.support.platform_server import Account, PlatformServer, serving, submission

DATASETS = "/api/cli/datasets"
ROW = b'{"system_prompt": "", "user_prompt": "a"}\n'
LIMITS = ServerLimits(simple_upload_bytes=100, part_bytes=64, dataset_bytes=10_000, datasets=30)


@pytest.fixture(scope="module")
def platform_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    """A platform whose limits are small."""
    with serving(tmp_path_factory.mktemp("platform"), limits=LIMITS) as server:
        yield server


def create(client: httpx.Client, content: bytes, name: str = "rows.jsonl") -> dict[str, Any]:
    body = {
        "file_name": name,
        "file_size": len(content),
        "extension": name.rpartition(".")[2],
    }
    answer = client.post(DATASETS, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def put(url: str, content: bytes | Iterator[bytes]) -> httpx.Response:
    """Send a part as any HTTP client does, without the login."""
    # Without `verify=False` each call would load all certificates, of which plain HTTP has none.
    return httpx.put(url, content=content, trust_env=False, verify=False, timeout=60)


def send(upload: dict[str, Any], content: bytes, skip: tuple[int, ...] = ()) -> list[Any]:
    """Send the parts of an upload, and return what `complete` takes."""
    size = upload["part_size"]
    sent = []
    for part in upload["parts"]:
        number = part["part_number"]
        if number not in skip:
            answer = put(part["presigned_url"], content[(number - 1) * size : number * size])
            assert answer.status_code == 200
            sent.append({"part_number": number, "etag": answer.headers["etag"]})
    return sent


def finish(client: httpx.Client, dataset: dict[str, Any], parts: Any = ()) -> httpx.Response:
    return client.post(f"{DATASETS}/{dataset['id']}/complete", json={"parts": list(parts)})


def stored(platform_server: PlatformServer, dataset: dict[str, Any]) -> list[str]:
    folder = platform_server.settings.data / "datasets" / dataset["id"]
    return sorted(path.name for path in folder.glob("*"))


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("rows.jsonl", ROW * 2, 2),
        ("rows.CSV", b"system_prompt,user_prompt\na,b\n", 1),
        ("rows.json", b'[{"system_prompt": "", "user_prompt": "a"}]', 1),
    ],
)
def test_a_small_file_is_sent_in_one_piece_and_its_rows_are_counted(
    client: httpx.Client,
    platform_server: PlatformServer,
    name: str,
    content: bytes,
    rows: int,
):
    dataset = create(client, content, name)
    assert dataset["upload"]["method"] == "simple"
    assert put(dataset["upload"]["presigned_url"], content).status_code == 200
    found = finish(client, dataset).json()
    assert (found["status"], found["row_count"]) == ("ready", rows)
    assert found == finish(client, dataset).json()
    listed = client.get(DATASETS, params={"limit": 1}).json()
    assert (listed["datasets"][0], listed["has_more"]) == (found, True)
    file = f"rows.{found['extension']}"
    assert stored(platform_server, dataset) == [file]
    data = platform_server.settings.data
    kept = [data / "datasets", data / "datasets" / dataset["id"]]
    kept += [kept[1] / file, *data.glob("platform.sqlite3")]
    assert [path for path in kept if path.stat().st_mode & 0o077] == []  # the owner's alone


def test_a_large_file_is_sent_in_parts_and_goes_on_where_it_was_cut(
    client: httpx.Client, platform_server: PlatformServer
):
    content = ROW * 5
    dataset = create(client, content)
    first = send(dataset["upload"], content, skip=(2, 4))
    refused = finish(client, dataset, first)
    assert (refused.status_code, refused.json()["code"]) == (409, "parts_missing")
    assert refused.json()["details"]["part_numbers"] == [2, 4]
    again = client.get(f"{DATASETS}/{dataset['id']}/parts").json()
    known = [(part["part_number"], part["size"]) for part in again["parts"]]
    assert known == [(1, 64), (3, 64)]
    rest = send(again["upload"], content, skip=(1, 3))
    parts = [*again["parts"], *rest]
    for part in again["parts"]:
        del part["size"]
    wrong = [{**part, "etag": "other"} for part in parts]
    for mistaken in (wrong, parts[:-1], [*parts, {"part_number": 9, "etag": "x"}]):
        assert finish(client, dataset, mistaken).json()["code"] == "etag_mismatch"
    assert finish(client, dataset, [*parts, *parts]).status_code == 422
    assert finish(client, dataset, parts).json()["row_count"] == 5
    folder = platform_server.settings.data / "datasets" / dataset["id"]
    assert (folder / "rows.jsonl").read_bytes() == content
    assert put(dataset["upload"]["parts"][0]["presigned_url"], content[:64]).status_code == 404


def test_an_upload_for_whose_whole_file_the_disk_has_no_room_is_completed_later(
    owner: httpx.Client, platform_server: PlatformServer, monkeypatch: pytest.MonkeyPatch
):
    def full(source: BinaryIO, target: BinaryIO, length: int) -> None:
        target.write(source.read(10))
        raise OSError(errno.ENOSPC, "No space left on device")

    dataset = create(owner, ROW)
    url = dataset["upload"]["presigned_url"]
    put(url, b"x" * len(ROW))
    etag = put(url, ROW).headers["etag"]  # a part that is sent again replaces the first
    listed = owner.get(f"{DATASETS}/{dataset['id']}/parts").json()["parts"]
    assert [f'"{part["etag"]}"' for part in listed] == [etag]
    parts = [{"part_number": 1, "etag": etag}]
    arrived = stored(platform_server, dataset)
    with monkeypatch.context() as patch:
        patch.setattr(files, "shutil", SimpleNamespace(copyfileobj=full))
        refused = finish(owner, dataset, parts)
    assert (refused.status_code, refused.json()["code"]) == (507, "no_space")
    assert stored(platform_server, dataset) == arrived
    found = finish(owner, dataset, parts).json()
    assert (found["status"], found["row_count"]) == ("ready", 1)


@pytest.mark.parametrize("content", [ROW[:-1], ROW + b"x", b""])
def test_a_part_of_another_size_leaves_nothing(
    owner: httpx.Client, platform_server: PlatformServer, content: bytes
):
    dataset = create(owner, ROW)
    answer = put(dataset["upload"]["presigned_url"], content)
    assert answer.json()["code"] == "wrong_size"
    chunked = put(dataset["upload"]["presigned_url"], iter([content]))
    assert chunked.json()["code"] == "wrong_size"
    assert stored(platform_server, dataset) == []


@pytest.mark.fault("the URL of an upload is changed, or old")
@pytest.mark.fault("one upload is sent over and over")
def test_an_upload_keeps_the_last_of_each_part_however_often_it_is_sent(
    client: httpx.Client, platform_server: PlatformServer
):
    content = ROW * 3
    dataset = create(client, content)
    folder = platform_server.settings.data / "datasets" / dataset["id"]
    urls = [part["presigned_url"] for part in dataset["upload"]["parts"]]
    for number in range(10):
        assert [put(url, f"{number:064}".encode()).status_code for url in urls] == [200, 400]
    assert len(stored(platform_server, dataset)) == 1
    with ThreadPoolExecutor(20) as threads:
        bodies = [f"{number:064}".encode() for number in range(40)]
        statuses = {*threads.map(lambda body: put(urls[0], body).status_code, bodies)}
    assert 200 in statuses <= {200, 503}
    assert sum(path.stat().st_size for path in folder.iterdir()) <= len(content)
    parts = send(dataset["upload"], content)
    assert finish(client, dataset, parts).json()["row_count"] == 3


@pytest.mark.fault("one upload is sent over and over")
def test_a_part_that_arrives_is_no_second_time_on_disk(tmp_path: Path):
    found = files.DatasetFiles(tmp_path, "x", "jsonl")
    found.make()
    (found.folder / "incoming-00001").write_bytes(b"of a process that was killed")
    with found.receive(1) as first, found.receive(2) as other:
        first.write(b"one")
        other.write(b"two")
        with pytest.raises(Refused) as refused, found.receive(1):
            pass
        assert refused.value.status == 503
        assert first.finish() != other.finish()
    with found.receive(1):
        pass
    assert [part.number for part in found.parts()] == [1, 2]
    assert len([*found.folder.iterdir()]) == 2


def test_a_url_serves_its_own_part_until_it_expires(
    owner: httpx.Client, platform_server: PlatformServer
):
    dataset, other = create(owner, ROW), create(owner, ROW)
    url = dataset["upload"]["presigned_url"]
    for changed in (
        url.replace(dataset["id"], other["id"]),
        url.replace("/1?", "/2?"),
        url.replace("/1?", f"/{'9' * 5000}?"),
        re.sub(r"expires=\d+", "expires=99999999999", url),
        re.sub(r"signature=\w+", "signature=%FF", url),
        url.partition("?")[0],
    ):
        answer = put(changed, ROW)
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_signature")
    with platform_server.database.reading() as session:
        record = session.get_one(Dataset, dataset["id"])
    late = upload_document(platform_server.vault, platform_server.url, record, -1)
    assert put(late["presigned_url"], ROW).json()["code"] == "expired_url"
    assert put(url, ROW).status_code == 200


@pytest.mark.fault("a dataset that is uploaded holds rows that no evaluation takes")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not json\n", "rows.jsonl:1: not JSON: Expecting value"),
        (b'{"asked": "a"}\n', "rows.jsonl: 'user_prompt' is missing"),
        (ROW + b"x\ny\n", "rows.jsonl: 2 rows cannot be used: line 2: not JSON"),
        (b"\x1f\x8b" + b"x" * 10, "rows.jsonl: looks like gzip"),
    ],
)
def test_what_is_no_dataset_is_refused_with_the_reason_and_without_a_path(
    owner: httpx.Client, platform_server: PlatformServer, content: bytes, reason: str
):
    dataset = create(owner, content)
    put(dataset["upload"]["presigned_url"], content)
    refused = finish(owner, dataset)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_dataset")
    assert f"the file is no dataset: {reason}" in refused.json()["error"]
    shown = owner.get(DATASETS).json()["datasets"][0]
    assert (shown["status"], shown["row_count"]) == ("failed", None)
    assert reason in shown["error"]
    assert str(platform_server.settings.data) not in refused.text
    assert stored(platform_server, dataset) == []


def test_an_aborted_upload_leaves_nothing(owner: httpx.Client, platform_server: PlatformServer):
    dataset = create(owner, ROW)
    put(dataset["upload"]["presigned_url"], ROW)
    assert owner.post(f"{DATASETS}/{dataset['id']}/abort").json()["status"] == "aborted"
    assert stored(platform_server, dataset) == []
    assert put(dataset["upload"]["presigned_url"], ROW).status_code == 404
    assert finish(owner, dataset).status_code == 404
    names = [each["id"] for each in owner.get(DATASETS).json()["datasets"]]
    assert dataset["id"] not in names


def uploaded(client: httpx.Client, name: str = "rows.jsonl") -> dict[str, Any]:
    """A dataset that can be used."""
    dataset = create(client, ROW, name)
    put(dataset["upload"]["presigned_url"], ROW)
    found: dict[str, Any] = finish(client, dataset).json()
    return found


def names(client: httpx.Client) -> list[str]:
    return [each["file_name"] for each in client.get(DATASETS).json()["datasets"]]


def test_a_dataset_is_deleted_with_its_file_and_its_name_is_free(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    dataset = uploaded(client)
    assert client.delete(f"{DATASETS}/rows").json() == {
        "id": dataset["id"], "file_name": "rows.jsonl", "deleted": True
    }  # fmt: skip
    data = platform_server.settings.data
    assert not (data / "datasets" / dataset["id"]).exists()
    assert list((data / "deleting").iterdir()) == []
    assert names(client) == ["my-dataset.jsonl"]
    assert client.delete(f"{DATASETS}/rows").status_code == 404
    ids = {uploaded(client, name)["id"] for name in ("two.jsonl", "two.jsonl", "two.x.jsonl")}
    refused = client.delete(f"{DATASETS}/two")  # a name of several deletes none of them
    assert (refused.status_code, refused.json()["code"]) == (409, "ambiguous")
    assert "2 datasets have this name: give the id of one" in refused.json()["error"]
    first, second = refused.json()["details"]["ids"]
    assert {first, second} < ids
    assert client.delete(f"{DATASETS}/{first}").status_code == 200
    assert client.delete(f"{DATASETS}/two.jsonl").json()["id"] == second


def test_a_dataset_of_a_run_that_goes_on_stays_and_of_one_that_has_ended_goes(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    dataset = uploaded(client)
    run = platform_server.add_run(account=account, name="a-run", dataset_id=dataset["id"])
    refused = client.delete(f"{DATASETS}/{dataset['id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    message = "rows.jsonl is used by runs that have not ended (a-run): stop them first"
    assert refused.json()["error"] == message
    assert stored(platform_server, dataset) == ["rows.jsonl"]
    platform_server.set_run(run, status="stopped", completed_at=now())
    assert client.delete(f"{DATASETS}/{dataset['id']}").status_code == 200
    assert stored(platform_server, dataset) == []
    assert names(client) == ["my-dataset.jsonl"]
    shown = client.get("/api/cli/eval-runs/a-run").json()
    assert shown["dataset"] == {"id": dataset["id"], "name": "my-dataset"}
    for name in (dataset["id"], "rows", ""):
        body = submission()
        body["experiment_config"]["dataset"] = name or "x"
        assert client.post("/api/cli/eval-runs", json=body).status_code == 422
        assert client.delete(f"{DATASETS}/{name or 'x'}").status_code == 404


def test_what_a_deletion_has_left_is_removed_later_and_what_it_has_not_decided_stays(
    owner: httpx.Client,
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    def refuse(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    failed, killed, undecided, begun = *(uploaded(owner) for _ in range(3)), create(owner, ROW)
    data, database = platform_server.settings.data, platform_server.database
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "shutil", SimpleNamespace(rmtree=refuse))
        assert owner.delete(f"{DATASETS}/{failed['id']}").status_code == 200
        assert f"datasets {failed['id']} cannot be removed: Permission denied" in caplog.text
        patch.setattr(deletion, "_remove", lambda folder: None)  # as after a kill
        assert owner.delete(f"{DATASETS}/{killed['id']}").status_code == 200
        with pytest.raises(ZeroDivisionError), database.writing() as session:
            deletion.delete_dataset(session, data, session.get_one(Dataset, undecided["id"]))
            raise ZeroDivisionError
    unknown = data / "datasets" / "unknown"
    unknown.mkdir()
    with database.writing() as session:
        session.get_one(Dataset, begun["id"]).created_at = now() - timedelta(days=8)
    left = (killed, failed, undecided)
    assert [stored(platform_server, each) for each in left] == [["rows.jsonl"]] * 3
    deletion.sweep(database, data)
    assert [stored(platform_server, each) for each in left] == [[], [], ["rows.jsonl"]]
    assert undecided["id"] in [each["id"] for each in owner.get(DATASETS).json()["datasets"]]
    assert not (data / "datasets" / begun["id"]).exists()
    assert unknown.exists()
    (marker,) = (data / "deleting").iterdir()
    assert marker.name == f"datasets-{undecided['id']}"
    os.utime(marker, (0, 0))
    deletion.sweep(database, data)
    assert not marker.exists()
    assert stored(platform_server, undecided) == ["rows.jsonl"]


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"file_name": "../../etc/passwd.jsonl"}, 422, "file_name"),
        ({"file_name": "..\\x.jsonl"}, 422, "file_name"),
        ({"file_name": ".jsonl"}, 422, "file_name"),
        ({"file_name": "a\0.jsonl"}, 422, "file_name"),
        ({"file_name": "a.csv"}, 422, "file_name"),
        ({"extension": "exe"}, 422, "extension"),
        ({"extension": "/../x"}, 422, "extension"),
        ({"file_size": 0}, 422, "file_size"),
        ({"file_size": 10_001}, 413, "file_size"),
        ({"file_size": True}, 422, "file_size"),
    ],
)
def test_what_is_no_file_of_rows_is_refused(
    owner: httpx.Client,
    platform_server: PlatformServer,
    changes: dict[str, Any],
    status: int,
    field: str,
):
    body = {"file_name": "a.jsonl", "file_size": 10, "extension": ".jsonl", **changes}
    answer = owner.post(DATASETS, json=body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


def test_a_workspace_has_room_for_so_many_datasets(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    for _ in range(29):
        platform_server.add_dataset(account=account)
    answer = client.post(
        DATASETS, json={"file_name": "a.jsonl", "file_size": 10, "extension": "jsonl"}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many")
