"""Recorded calls on disk: what is compared, what is kept, and what a damaged file does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.transport import cassettes
from osmosis_ai.models.transport.exchange import Reply
from osmosis_ai.rubric.prompt import Case, judge_messages
from osmosis_ai.secret import Secret, mask_everywhere
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.features.cassettes import CassetteSpec
from pytest_osmosis.features.cassettes import folder as cassette_folder
from pytest_osmosis.features.cassettes.folder_cassette import FolderCassette
from pytest_osmosis.features.cassettes.lines import Request
from pytest_osmosis.run_result import RunId

SECRET = 'sk-4f81/ü"secret'
PATH = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def outside_of_runs() -> Iterator[None]:
    token = cassettes.current.set(None)
    yield
    cassettes.current.reset(token)


def body(*texts: str, **more: Any) -> bytes:
    messages = [{"role": "user", "content": text} for text in texts]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def request(content: bytes) -> Request:
    return Request("POST", PATH, content)


def recorder(folder: Path, *, replays: bool = False, asks: bool = False) -> FolderCassette:
    return FolderCassette(CassetteSpec(folder, replays, asks))


def record(cassette: FolderCassette, run: RunId, *calls: tuple[bytes, Any]) -> None:
    cassette.begin(run)
    for asked, said in calls:
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        cassette.keep("POST", PATH, asked, Reply(200, {"content-type": "x/y"}, content))


def answer(cassette: FolderCassette, run: RunId, asked: bytes) -> Any:
    cassette.begin(run, again=True)
    reply = cassette.answer("POST", PATH, asked)
    return None if reply is None else json.loads(reply.body)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (body("a", seed=8, user="eval-1-run-2"), True),
        (b'{ "messages":[{"content":"a","role":"user"}],"model":"m"}', True),
        (body("b", seed=7), False),
        (body("a", "a", seed=7), False),
        (body("a", temperature=0.5), False),
        (body("a", tools=[{"type": "function"}]), False),
    ],
)  # fmt: skip
def test_requests_are_the_same_but_for_what_names_their_run(other: bytes, same: bool):
    assert (request(other).id == request(body("a", seed=7)).id) is same


def test_the_random_markers_of_judges_prompts_are_no_difference():
    def asked(candidate: str) -> bytes:
        case = Case(rubric="Is it?", candidate=candidate, score_min=0, score_max=1)
        return json.dumps({"model": "j", "messages": judge_messages(case)}).encode()

    assert asked("a") != asked("a")
    assert request(asked("a")).id == request(asked("a")).id != request(asked("b")).id


def test_lines_have_no_secret_and_bodies_once(tmp_path: Path):
    mask_everywhere(Secret(SECRET, "KEY"))
    cassette = recorder(tmp_path)
    for run in range(3):
        said = {"text": SECRET, "half": "\ud800", "count": run}
        record(cassette, RunId("s", 0, run), (body("hello", SECRET), said), (body("hello"), said))
    cassette.close()
    cassette_folder.join(tmp_path)
    [file] = tmp_path.iterdir()
    text = file.read_text("utf-8")
    assert "secret" not in text and "sk-4f81" not in text
    assert text.count("hello") == 1 and len(text.splitlines()) == 2 + 2 + 6
    replayed = recorder(tmp_path, replays=True)
    assert answer(replayed, RunId("s", 0, 2), body("hello", SECRET)) == {
        "text": "***", "half": "\ud800", "count": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"<html>", b'{"a": 1, "a": NaN}', b"1" * 5000]
)
def test_replies_of_any_content(tmp_path: Path, content: bytes):
    cassette = recorder(tmp_path)
    record(cassette, RunId("s", 0, 0), (b"\xff", content))
    cassette.close()
    again = recorder(tmp_path, replays=True)
    again.begin(RunId("s", 0, 0))
    reply = again.answer("POST", PATH, b"\xff")
    assert reply is not None and reply.content_type == "x/y"
    assert reply.body == (b'{"a":NaN}' if content.startswith(b"{") else content)


def test_a_run_that_began_again_has_its_last_calls_alone(tmp_path: Path):
    run, other = RunId("s", 0, 0), RunId("s", 0, 1)
    first, second = recorder(tmp_path), recorder(tmp_path)
    record(first, run, (body("a"), 1), (body("given up"), 2))
    record(first, other, (body("a"), 3))
    record(second, run, (body("a"), 4))
    for cassette in (first, second):
        cassette.close()
    cassette_folder.join(tmp_path)
    replayed = recorder(tmp_path, replays=True)
    assert [answer(replayed, each, body("a")) for each in (run, other)] == [4, 3]
    assert "given up" not in (tmp_path / "calls.jsonl").read_text()


def test_the_file_is_the_same_in_whatever_order_calls_end(tmp_path: Path):
    texts = []
    for name, order in (("one", (0, 1, 2)), ("other", (2, 0, 1))):
        folder = tmp_path / name
        folder.mkdir()
        for index in order:
            cassette = recorder(folder)
            record(cassette, RunId("s", index, 0), (body(f"row {index}"), index))
            cassette.close()
        cassette_folder.join(folder)
        texts.append((folder / "calls.jsonl").read_bytes())
    assert texts[0] == texts[1]


def test_the_torn_end_of_a_killed_process_is_left_out(tmp_path: Path):
    cassette = recorder(tmp_path)
    record(cassette, RunId("s", 0, 0), (body("a"), 1), (body("a"), 2))
    cassette.close()
    [part] = tmp_path.iterdir()
    part.write_bytes(part.read_bytes()[:-9])
    replayed = recorder(tmp_path, replays=True)
    assert answer(replayed, RunId("s", 0, 0), body("a")) == 1
    cassette_folder.join(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["calls.jsonl"]
    lines = part.with_name("calls.jsonl")
    lines.write_bytes(lines.read_bytes()[:-1])
    with pytest.raises(ConfigurationError, match=r"calls.jsonl, line 3, is no recorded call"):
        cassette_folder.read(tmp_path)


def test_an_answer_is_asked_for_as_often_as_it_was_recorded(tmp_path: Path):
    run = RunId("s", 3, 1)
    cassette = recorder(tmp_path)
    record(cassette, run, (body("a"), 1), (body("a"), 2))
    cassette.close()
    for asks in (False, True):
        replayed = recorder(tmp_path, replays=True, asks=asks)
        assert replayed.is_complete is not asks
        assert [answer(replayed, run, body("a")) for _ in range(2)] == [1, 2]
        if asks:
            assert answer(replayed, run, body("a")) is None
            continue
        with pytest.raises(CallFault, match="row 3, run 1, as often as") as caught:
            answer(replayed, run, body("a"))
        assert caught.value.kind == "not_recorded" and not caught.value.retried


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (body("one two three four five SIX seven eight nine ten", temperature=0),
         'messages[0] (user) was "three four five six seven eight nine" and is "three four five '
         'SIX seven eight nine"'),
        (body("one two three four five six seven eight nine ten", "more", temperature=0),
         'messages[1] (user) was nothing and is "more"'),
        (body("one two three four five six seven eight nine ten", temperature=1),
         'temperature was "0" and is "1"'),
        (body("one two three four five six seven eight nine ten", temperature=0, tools=[{"a": 1}]),
         'tools[0] was nothing and is "{"a":1}"'),
    ],
)  # fmt: skip
def test_a_missing_answer_says_what_differs_from_the_nearest_request(
    tmp_path: Path, asked: bytes, message: str
):
    cassette = recorder(tmp_path)
    words = "one two three four five six seven eight nine ten"
    record(cassette, RunId("s", 0, 0), (body(words, temperature=0), 1), (body("far"), 2))
    record(cassette, RunId("s", 1, 0), (body("other", temperature=0), 2))
    cassette.close()
    replayed = recorder(tmp_path, replays=True)
    with pytest.raises(CallFault) as caught:
        answer(replayed, RunId("s", 0, 0), asked)
    assert caught.value.detail.endswith(f"in the nearest one, of row 0, run 0, {message}")
