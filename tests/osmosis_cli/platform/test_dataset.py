"""`osmosis dataset`: files are checked, sent without credentials, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.platform import datasets as wire
from osmosis_ai.platform.client import Limits
from osmosis_cli.errors import run
from osmosis_cli.main import cli
from osmosis_cli.platform import connection
from tests.support.command import Osmosis
from tests.support.fake_platform import TOKEN, FakePlatform, Request
from tests.support.narrow_terminal import NarrowTerminal
from tests.support.platform_server import PlatformServer, serving

DATASETS = "/api/cli/datasets"
PART = 100
ETAG = '"etag-of-a-part"'
ROW = '{"system_prompt": "", "user_prompt": "What is 1 + 1?", "ground_truth": "2"}\n'


class Storage:
    """The part of a platform that takes datasets."""

    def __init__(self, platform: FakePlatform) -> None:
        self.platform = platform
        self.arrived: dict[int, bytes] = {}
        self.count = 0
        self.fails_at: int | None = None
        platform.headers["ETag"] = ETAG
        platform.answers = {
            ("POST", DATASETS): self.begin,
            ("POST", f"{DATASETS}/d1/complete"): self.complete,
            ("POST", f"{DATASETS}/d1/abort"): {},
        }

    def begin(self, request: Request) -> tuple[int, Any]:
        self.arrived.clear()
        size = request.body["file_size"]
        self.count = -(-size // PART)
        record = {"id": "d1", "file_name": request.body["file_name"], "status": "uploading"}
        if self.count == 1:
            upload = {"method": "simple", "presigned_url": self.url(1)}
        else:
            upload = {"method": "multipart", "part_size": PART, **self.places()}
        return 201, {**record, "upload": upload}

    def places(self) -> dict[str, Any]:
        numbers = range(1, self.count + 1)
        return {"parts": [{"part_number": n, "presigned_url": self.url(n)} for n in numbers]}

    def url(self, number: int) -> str:
        self.platform.answers["PUT", f"/put/{number}"] = lambda request: self.put(request, number)
        return f"{self.platform.url}/put/{number}?signature=abc"

    def put(self, request: Request, number: int) -> tuple[int, Any]:
        if number == self.fails_at:
            return 503, {"error": "no storage"}
        self.arrived[number] = request.body
        return 200, {}

    def complete(self, request: Request) -> tuple[int, Any]:
        return 200, {"id": "d1", "file_name": "rows.jsonl", "status": "ready", "row_count": 9}

    def content(self) -> bytes:
        return b"".join(self.arrived[number] for number in sorted(self.arrived))

    def sent(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.platform.requests]


@pytest.fixture
def storage(platform: FakePlatform) -> Storage:
    return Storage(platform)


@pytest.fixture
def osmosis(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Osmosis:
    """The command, logged in by a variable, in the workspace `acme/agents`; it tries once."""
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(connection, "LIMITS", Limits(tries=1))
    monkeypatch.setattr(connection, "workspace_repository", lambda: "acme/agents")
    monkeypatch.chdir(tmp_path)
    return osmosis.logged_in(platform)


def rows(count: int, name: str = "rows.jsonl", *, question: str | None = None) -> bytes:
    """Write a dataset; its content. One with a short `question` fits into one piece."""
    row = ROW if question is None else f'{{"user_prompt":"{question}"}}\n'
    Path(name).write_text(row * count)
    return Path(name).read_bytes()


# ---- what is sent


@pytest.mark.fault("the address of a part redirects, or is plain http elsewhere")
def test_a_small_file_is_sent_in_one_piece_and_without_credentials(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform
):
    content = rows(4, question="u")
    status, out, _ = osmosis("dataset", "upload", "rows.jsonl")
    assert status == 0
    assert out == 'uploaded rows.jsonl (4 rows), ready\nin a config file: dataset = "rows"\n'
    begin, put, complete = platform.requests
    assert begin.body == {
        "file_name": "rows.jsonl",
        "file_size": len(content),
        "extension": "jsonl",
    }
    assert begin.headers["authorization"] == f"Bearer {TOKEN}"
    assert begin.headers["x-osmosis-git"] == "acme/agents"
    assert (put.method, put.query, put.body) == ("PUT", {"signature": "abc"}, content)
    assert not {"authorization", "x-osmosis-git", "x-osmosis-cli-version"} & set(put.headers)
    assert put.headers["content-length"] == str(len(content))
    assert complete.body == {"parts": [{"part_number": 1, "etag": ETAG}]}


def test_a_large_file_is_sent_in_parts(osmosis: Osmosis, storage: Storage, platform: FakePlatform):
    content = rows(9)
    status, out, _ = osmosis("dataset", "upload", "rows.jsonl", "--json")
    assert status == 0
    document = json.loads(out)
    assert (document["id"], document["status"], document["checked_rows"]) == ("d1", "ready", 9)
    assert storage.content() == content
    numbers = range(1, storage.count + 1)
    assert platform.requests[-1].body == {
        "parts": [{"part_number": number, "etag": ETAG} for number in numbers]
    }


@pytest.mark.parametrize(
    ("name", "text"), [("rows.jsonl", '{"user_prompt": 1}\n'), ("rows.txt", ROW)]
)
def test_a_dataset_that_cannot_be_used_is_not_sent(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform, name: str, text: str
):
    Path(name).write_text(text)
    status, out, err = osmosis("dataset", "upload", name)
    assert (status, out, platform.requests) == (1, "", [])
    assert name in err


def test_rows_of_which_only_some_have_a_task_are_not_sent(osmosis: Osmosis, platform: FakePlatform):
    task, none = (
        '{"metadata": {"a": 1}, "user_prompt": "q"}\n',
        '{"metadata": {}, "user_prompt": "q"}\n',
    )
    Path("rows.jsonl").write_text(2 * task + none + task)
    error = osmosis.error("dataset", "upload", "rows.jsonl")
    assert "'metadata' is no object with something in it in line 3, but is one elsewhere" in error
    assert platform.requests == []


@pytest.mark.parametrize("name", ["gone.csv", "."])
def test_what_is_no_file_is_wrong_use(osmosis: Osmosis, platform: FakePlatform, name: str):
    status, out, err = osmosis("dataset", "upload", name)
    assert (status, out, platform.requests) == (2, "", [])
    assert f"'{name}'" in err


@pytest.mark.fault("the address of a part redirects, or is plain http elsewhere")
@pytest.mark.parametrize(
    "upload",
    [
        None,
        {"method": "multipart", "part_size": 100, "parts": []},
        {"method": "multipart", "part_size": 0, "parts": [{"part_number": 1}]},
        {"method": "simple", "presigned_url": "http://storage.example/put"},
        {"method": "simple", "presigned_url": "file:///etc/passwd"},
    ],
)
def test_an_address_that_nothing_can_be_sent_to_is_refused(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform, upload: Any
):
    rows(4)
    platform.answers["POST", DATASETS] = lambda _: (201, {"id": "d1", "upload": upload})
    assert f"the answer of {platform.url}" in osmosis.error("dataset", "upload", "rows.jsonl")


@pytest.mark.fault("the address of a part redirects, or is plain http elsewhere")
def test_a_redirect_of_a_part_is_not_followed(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform
):
    rows(4)
    platform.headers["Location"] = f"{platform.url}/elsewhere"
    storage.put = lambda request, number: (307, {})  # type: ignore[method-assign]
    assert "not followed" in osmosis.error("dataset", "upload", "rows.jsonl")
    assert "PUT /elsewhere" not in storage.sent()


def test_a_dataset_that_the_platform_cannot_use_is_a_failure(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform
):
    rows(4)
    failed = {"id": "d1", "status": "failed", "error": "no \x1b rows"}
    platform.answers["POST", f"{DATASETS}/d1/complete"] = failed
    assert "cannot use it: no \\x1b rows" in osmosis.error("dataset", "upload", "rows.jsonl")


# ---- cut short, and gone on with


@pytest.mark.fault("an upload is cut short: Ctrl-C or a failure")
def test_an_upload_that_fails_is_forgotten_and_begins_anew(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform
):
    content = rows(9)
    storage.fails_at = 3
    status, out, err = osmosis("dataset", "upload", "rows.jsonl")
    assert (status, out, "no storage" in err) == (1, "", True)
    assert storage.sent()[-1] == f"POST {DATASETS}/d1/abort"
    storage.fails_at = None
    assert osmosis("dataset", "upload", "rows.jsonl")[0] == 0
    assert storage.content() == content


@pytest.mark.fault("an upload is cut short: Ctrl-C or a failure")
def test_an_interrupted_upload_leaves_nothing(
    osmosis: Osmosis, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    def stopped(*args: Any) -> str:
        raise KeyboardInterrupt

    rows(9)
    monkeypatch.setattr(wire, "send_part", stopped)
    status, _, err = osmosis("dataset", "upload", "rows.jsonl", "--json")
    assert (status, "nothing was uploaded" in err) == (130, True)
    assert json.loads(err)["error"]["code"] == "interrupted"
    assert storage.sent()[-1] == f"POST {DATASETS}/d1/abort"


@pytest.mark.fault("the file changes while it is uploaded")
def test_a_file_that_changes_while_it_is_sent_is_not_completed(
    osmosis: Osmosis, storage: Storage, platform: FakePlatform
):
    rows(9)

    def put(request: Request, number: int) -> tuple[int, Any]:
        if number == 2:
            rows(4)
        return 200, {}

    storage.put = put  # type: ignore[method-assign]
    assert osmosis.failure("dataset", "upload", "rows.jsonl")["code"] == "file_changed"
    assert f"POST {DATASETS}/d1/complete" not in storage.sent()


# ---- against the platform itself


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
    from osmosis_platform.settings import ServerLimits

    limits = ServerLimits(simple_upload_bytes=PART, part_bytes=PART)
    with serving(tmp_path_factory.mktemp("platform"), limits=limits) as server:
        yield server


@pytest.mark.slow
def test_the_platform_takes_what_is_uploaded_and_lists_it(
    real: PlatformServer, osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    for name, value in real.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(connection, "workspace_repository", lambda: real.repository)
    rows(4, "small.jsonl", question="u")
    rows(9, "large.jsonl")
    assert osmosis("dataset", "upload", "small.jsonl")[0] == 0
    status, out, _ = osmosis("dataset", "upload", "large.jsonl", "--json")
    assert (status, json.loads(out)["row_count"]) == (0, 9)
    status, out, _ = osmosis("dataset", "list")
    header, *found = [line.split() for line in out.splitlines()]
    assert header[:4] == ["name", "status", "rows", "size"]
    assert [row[:3] for row in found] == [
        ["large.jsonl", "ready", "9"],
        ["small.jsonl", "ready", "4"],
    ]
    status, out, _ = osmosis("dataset", "list", "--limit", "1", "--json")
    document = json.loads(out)
    assert [one["file_name"] for one in document["datasets"]] == ["large.jsonl"]
    assert (document["total_count"], document["has_more"]) == (2, True)
    assert "1 of 2; all of them" in osmosis("dataset", "list", "--limit", "1")[1]


def test_in_a_narrow_terminal_the_list_has_fewer_columns(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    dataset = {"id": "0123456789abcdef", "file_name": "rows.jsonl", "status": "ready"}
    platform.answers["GET", DATASETS] = {"datasets": [dataset], "has_more": False}
    terminal = NarrowTerminal(monkeypatch)
    assert run(cli, ["dataset", "list"]) == 0
    header, row = terminal.lines()
    assert header.split() == ["name", "status", "rows", "uploaded"]
    assert row.split() == ["rows.jsonl", "ready", "unknown", "unknown"]


def test_no_datasets_is_said_with_the_next_step(osmosis: Osmosis, platform: FakePlatform):
    platform.answers["GET", DATASETS] = {"datasets": [], "has_more": False}
    assert "osmosis dataset upload FILE" in osmosis("dataset", "list")[1]


@pytest.mark.parametrize("fault", ["401", "html"])
@pytest.mark.parametrize("words", [("list",), ("upload", "rows.jsonl")])
def test_a_platform_that_fails_is_one_error(
    osmosis: Osmosis, platform: FakePlatform, words: tuple[str, ...], fault: str
):
    rows(4)
    platform.fault = fault
    err = osmosis.error("dataset", *words, "--json")
    assert json.loads(err)["error"]["exit_code"] == 1
    assert TOKEN not in err


def line(**changed: Any) -> str:
    return json.dumps({"user_prompt": "u", "ground_truth": "t", **changed})


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([line()] * 3, "it has 3 rows; at least 4 can be uploaded"),
        ([line()] * 3 + [line(level=1)], "row 3 has 'level', which row 0 has not"),
        ([line(level=1)] + [line()] * 3, "row 1 has no 'level', which row 0 has"),
        ([line(level=1)] * 3 + [line(level="1")], "'level' is a number in row 0 and a string in"),
        ([line(at={"deep": [2**63]})] * 4, "row 0: 'at' holds an integer beyond 64 bits"),
        (
            [line(at={"a": {"b": 1}})] * 3 + [line(at={"a": {"b": "x"}})],
            "'at.a.b' is a number in row 0 and a string in row 3",
        ),
        (
            [line(of=[{"a": None}, {"a": 1}])] * 3 + [line(of=[{"a": [1]}])],
            "'of[].a' is a number in row 0 and a list in row 3",
        ),
        ([line(level=2**63 - 1), line(level=None), line(level=-(2**63)), line(level=0.5)], ""),
    ],
)
def test_what_a_platform_of_osmosis_would_refuse_is_not_sent(
    osmosis: Osmosis, storage: Storage, lines: list[str], sentence: str
):
    Path("rows.jsonl").write_text("\n".join(lines))
    if sentence:
        assert sentence in osmosis.error("dataset", "upload", "rows.jsonl")
        assert storage.sent() == []
    else:
        assert osmosis("dataset", "upload", "rows.jsonl")[0] == 0
