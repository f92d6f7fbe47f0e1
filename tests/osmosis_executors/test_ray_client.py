"""The process that is connected to Ray, with a Ray that only writes down what it is asked."""

from __future__ import annotations

import io
import json
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osmosis_executors.ray.client import RayClient, serve


class FakeRay:
    """One whose tasks end as their invitations say, at once."""

    folder = ""
    """Of the cluster that was started last."""
    is_broken = False
    """Whether no cluster can be started."""

    def __init__(self) -> None:
        self.util = SimpleNamespace(get_node_ip_address=lambda: "10.0.0.7")
        self.asked: list[Any] = []

    def init(self, **given: Any) -> None:
        self.folder = given.get("_temp_dir", "")
        if given["address"] == "wrong" or self.is_broken:
            raise ConnectionError("nothing is there\nand more")
        if self.folder:
            (Path(self.folder) / "sockets").mkdir()
        self.asked.append(given["address"])

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, function: Any) -> FakeRay:
        return self

    def options(self, **given: Any) -> SimpleNamespace:
        self.asked.append((given["name"], given["num_cpus"], given["max_retries"]))
        return SimpleNamespace(remote=self._run)

    def _run(self, invitation: str, prefix: str, mark: int) -> SimpleNamespace:
        future: Future[int] = Future()
        if invitation == "fails":
            future.set_exception(RuntimeError("the node\ndied"))
        elif invitation != "goes on":
            future.set_result(int(invitation))
        return SimpleNamespace(future=lambda: future, of=invitation)

    def cancel(self, task: Any, *, force: bool) -> None:
        self.asked.append(("cancel", task.of, force))
        raise ValueError("it has ended")

    def is_initialized(self) -> bool:
        return True

    def shutdown(self) -> None:
        self.asked.append("shutdown")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", found)  # type: ignore[arg-type]
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    return found


def served(*orders: tuple[str, dict[str, Any]]) -> list[Any]:
    """What is reported of these orders."""
    reports = io.StringIO()
    serve(map(json.dumps, orders), RayClient(reports))
    return [json.loads(line) for line in reports.getvalue().splitlines()]


def connect(folder: Path, address: str = "local") -> tuple[str, dict[str, Any]]:
    return "connect", {"address": address, "project": str(folder), "runtime_env": {}}


def start(shard: int, invitation: str) -> tuple[str, dict[str, Any]]:
    given = {"shard": shard, "number": 7 + shard, "invitation": invitation, "cpus": 0.5}
    return "start", given


def test_each_task_is_started_once_and_its_end_is_reported(ray: FakeRay, tmp_path: Path):
    orders = [connect(tmp_path), start(0, "3"), start(1, "fails"), start(2, "goes on")]
    assert served(*orders, ("cancel", {"shard": 2})) == [
        ["connected", {"host": "10.0.0.7", "processors": 3.0, "folder": ray.folder}],
        ["ended", {"shard": 0, "number": 7, "status": 3}],
        ["ended", {"shard": 1, "number": 8, "why": "RuntimeError: the node died"}],
    ]
    assert ray.asked[:3] == ["local", ("osmosis-shard-1", 0.5, 0), ("osmosis-shard-2", 0.5, 0)]
    assert ray.asked[4:] == [
        ("cancel", "goes on", True),
        *(("cancel", of, True) for of in ("3", "fails", "goes on")),
        "shutdown",
    ]


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of a server that answers the first caller with these bytes, and hangs up."""

    def serve_one() -> None:
        caller, _ = server.accept()
        with caller:
            caller.recv(1000)
            caller.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_one)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (bytes.fromhex("000018040000000000"), "connected"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "refused"),
        (b"", "refused"),
    ],
)
def test_an_address_where_something_else_listens_is_reported(
    ray: FakeRay, tmp_path: Path, answer: bytes, kind: str
):
    with listening(answer) as address:
        [[found, values]] = served(connect(tmp_path, address))
    assert found == kind
    assert kind == "connected" or "what listens there is no Ray" in values["why"]


def test_an_address_without_a_cluster_is_reported(ray: FakeRay, tmp_path: Path):
    [[kind, values]] = served(connect(tmp_path, "wrong"))
    assert kind == "refused"
    assert values["why"].startswith("no cluster can be used: nothing is there; give the address")


LONGEST = "session_2026-11-23_14-24-53_565997_4194304/sockets/plasma_store"
"""What Ray adds to the folder of a cluster."""


@pytest.mark.parametrize("length", [1, 100])
def test_a_cluster_that_is_started_has_a_short_folder_of_its_own_until_its_end(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
):
    place = tmp_path / ("x" * length)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    client = RayClient(io.StringIO())
    client.connect("auto", str(tmp_path), {})
    folder = Path(ray.folder)
    assert len(str(folder / LONGEST)) <= 103
    assert folder.stat().st_mode & 0o077 == 0
    client.close()
    assert not folder.exists()


def test_a_cluster_that_cannot_be_started_leaves_nothing_and_names_no_address(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    ray.is_broken = True
    message = "no cluster can be started here: nothing is there"
    assert served(connect(tmp_path, "auto")) == [["refused", {"why": message}]]
    assert ray.folder.startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())
