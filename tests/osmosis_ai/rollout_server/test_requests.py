from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from osmosis_ai.rollout_server.http.uvicorn import GuardedProtocol
from tests.osmosis_ai.rollout_server.trainer import KEY, Serve, Served, Trainer, init_body

HEAD = f"POST /v1/rollout/init HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
LARGE = 60 * 1024 * 1024


@contextmanager
def connected(served: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        yield connection


def status_of(connection: socket.socket) -> int:
    """The status of the reply, which must be followed by the end of the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return int(received.split()[1])


@pytest.mark.parametrize(
    ("key", "rest", "status"),
    [
        (KEY, f"Content-Length: {LARGE}\r\n\r\n", 413),
        ("wrong", f"Content-Length: {LARGE}\r\n\r\n", 401),
        (KEY, "Content-Length: 100\r\n\r\n{", 408),
    ],
    ids=["large", "without the key", "never whole"],
)
def test_a_body_that_is_too_large_unasked_for_or_late_is_answered_before_it_is_whole(
    serve: Serve, key: str, rest: str, status: int
):
    with connected(serve(body_timeout_s=0.2)) as connection:
        connection.sendall(f"{HEAD.replace(KEY, key)}{rest}".encode())
        assert status_of(connection) == status


@pytest.mark.parametrize("size", [1_000_001, 17 * 1024 * 1024])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_client_that_sends_too_much_can_read_the_answer(serve: Serve, size: int, framing: str):
    how = f"Content-Length: {size}" if framing == "length" else "Transfer-Encoding: chunked"
    begun = b"" if framing == "length" else b"%x\r\n" % size
    with connected(serve(max_body_bytes=1_000_000)) as connection:
        connection.sendall(f"{HEAD}{how}\r\n\r\n".encode() + begun)
        for _ in range(size // 4096):
            connection.sendall(b" " * 4096)
        connection.sendall(b" " * (size % 4096))
        if framing == "chunks":
            connection.sendall(b"\r\n0\r\n\r\n")
        assert status_of(connection) == 413


def test_what_is_sent_behind_an_answer_is_no_other_request(serve: Serve):
    served = serve(max_body_bytes=1000)
    with connected(served) as connection:
        head = f"{HEAD}Content-Length: 5000\r\n\r\n".encode()
        connection.sendall(head + b" " * 5000 + HEAD.encode() + b"Content-Length: 2\r\n\r\n{}")
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        assert (received.count(b"HTTP/1.1"), received[9:12]) == (1, b"413")


def test_a_body_without_a_length_is_read_up_to_the_limit(serve: Serve):
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with connected(serve(max_body_bytes=1_000_000)) as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        with pytest.raises((ConnectionError, AssertionError)):
            for _ in range(10_000):  # for ever, as far as the server is concerned
                connection.sendall(chunk)
            raise AssertionError("the server read on")


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("answered", "begun"),
    [
        (b"", b""),
        (b"", b"GET /health HTTP/1.1\r\nX-Slow: "),
        (HEALTH + b"\r\n", HEALTH[:20]),
        (HEALTH + b"Content-Length: 9\r\n\r\nx", b"x"),
    ],
    ids=["nothing", "half a head", "half a second head", "a body behind its answer"],
)
def test_what_is_begun_and_does_not_arrive_ends_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, answered: bytes, begun: bytes
):
    monkeypatch.setattr(GuardedProtocol, "head_timeout_s", 0.2)
    served = serve()
    with connected(served) as connection:
        connection.sendall(answered)
        received = b""
        while answered and not received.endswith(b"}"):
            received += connection.recv(65536)
        with pytest.raises(ConnectionError):
            connection.sendall(begun)
            if not connection.recv(100):
                raise ConnectionError("closed")
    assert served.health()["status"] == "healthy"


def test_a_head_without_end_ends_the_connection(serve: Serve):
    with connected(serve()) as connection, pytest.raises((ConnectionError, AssertionError)):
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        for number in range(10_000):
            connection.sendall(f"X-Header-{number}: {'x' * 1000}\r\n".encode())
        raise AssertionError("the server read on")


def test_bodies_share_a_budget(serve: Serve):
    served = serve(max_held_bytes=1000)
    for size, status in ((1500, 429), (900, 422), (900, 422)):  # what was held is given back
        with connected(served) as connection:
            head = f"{HEAD}Connection: close\r\nContent-Length: {size}\r\n\r\n".encode()
            connection.sendall(head + b" " * size)
            assert status_of(connection) == status


def deep(text: str, depth: int = 200_000) -> bytes:
    return text.replace("DEEP", "[" * depth + "]" * depth).encode()


GOOD = init_body("r1", "http://trainer.example")
MALFORMED = {
    "nothing": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "a string": b'"x"',
    "null": b"null",
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "Latin-1": b'{"rollout_id": "\xe9"}',
    "NaN": b'{"metadata": NaN}',
    "infinite": b'{"metadata": -Infinity}',
    "too large a number": b'{"metadata": {"x": 1e999}}',
    "5,000 digits": b'{"max_turns": ' + b"1" * 5000 + b"}",
    "deep": deep('{"metadata": {"x": DEEP}}'),
    "deep messages": deep('{"messages": DEEP}'),
    "missing field": json.dumps({"rollout_id": "r1"}).encode(),
    "messages a string": json.dumps({**GOOD, "messages": "hello"}).encode(),
    "message a string": json.dumps({**GOOD, "messages": ["hello"]}).encode(),
    "turns as words": json.dumps({**GOOD, "max_turns": "five"}).encode(),
    "turns true": json.dumps({**GOOD, "max_turns": True}).encode(),
    "no turns": json.dumps({**GOOD, "max_turns": 0}).encode(),
    "metadata too large": json.dumps({**GOOD, "metadata": {"x": "y" * 1_100_000}}).encode(),
    "key with a line break": json.dumps({**GOOD, "api_key": "a\nb"}).encode(),
    "empty idempotency key": json.dumps({**GOOD, "idempotency_key": ""}).encode(),
}
WRONG_IDS = ["", " ", " \u2003 ", "x" * 257, "x" * 10_000, "a\0b", "a\n", "\x7f", "\x85", 7, None]
MALFORMED |= {
    f"the id {wrong!r:.20}": json.dumps({**GOOD, "rollout_id": wrong}).encode()
    for wrong in WRONG_IDS
}


def test_a_malformed_body_is_422_and_starts_nothing(serve: Serve):
    served = serve()
    for what, body in MALFORMED.items():
        refused = served.ask("POST", "/v1/rollout/init", body)
        assert refused.status == 422, what
        assert refused.json()["code"] == "invalid", what
        assert "hello" not in refused.body.decode(), what
        assert len(refused.body) < 4000, what
    assert served.health()["active_rollouts"] == 0


ODD_IDS = [
    "..",
    "../../x",
    "a/b",
    "a b",
    "a+b=",
    "run#1?x",
    "é1",
    "{x}",
    "%2e",
    "x" * 256,
    "東" * 256,
]


def test_any_other_id_is_taken_and_comes_back_as_it_was(
    serve: Serve, trainer: Trainer, tmp_path: Path
):
    served = serve(debug_dir=tmp_path / "log")
    for rollout_id in ODD_IDS:
        assert served.init(rollout_id, trainer).json()["rollout_id"] == rollout_id
        assert trainer.result(rollout_id)["status"] == "COMPLETED"
        assert served.record(quote(rollout_id, safe=""))["rollout_id"] == rollout_id
    [folder] = (tmp_path / "log").iterdir()
    logs = sorted(folder.iterdir())
    assert sum(path.name.startswith(".") for path in logs) == 0
    lines = (json.loads(path.read_text().splitlines()[0]) for path in logs)
    assert sorted(line["rollout_id"] for line in lines) == sorted(ODD_IDS)
    assert {path.name for path in tmp_path.iterdir()} == {"log"}


def test_a_newer_trainers_fields_are_ignored_and_text_is_taken_for_a_whole_number(
    serve: Serve, trainer: Trainer
):
    served = serve()
    first = served.init("r", trainer, max_turns="5", surprise={"attempt": 1})
    assert first.status == 202
    trainer.result("r")
    again = served.init("r", trainer, max_turns="5", surprise={"attempt": 2})
    assert (again.status, again.body) == (202, first.body)
