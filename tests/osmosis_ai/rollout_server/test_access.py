from __future__ import annotations

import asyncio
import hmac
import http.client
from typing import Any

import pytest

from osmosis_ai.rollout import create_app
from osmosis_ai.rollout_server.http.auth import Access
from osmosis_ai.secret import Secret
from tests.osmosis_ai.rollout_server.agents import Behaving
from tests.osmosis_ai.rollout_server.trainer import KEY, Serve, Served, Trainer, init_body

WRONG = {
    "none": [],
    "empty": [""],
    "wrong": ["Bearer wrong"],
    "a part": [f"Bearer {KEY[:-1]}"],
    "longer": [f"Bearer {KEY}x"],
    "no scheme": [KEY],
    "basic": [f"Basic {KEY}"],
    "non-ascii": ["Bearer schlüssel".encode()],
    "undecodable": [b"Bearer \xff\xfe"],
    "twice": [f"Bearer {KEY}", f"Bearer {KEY}"],
}


def raw(served: Served, path: str, authorization: list[Any]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.putrequest("POST", path)
    for value in authorization:
        connection.putheader("Authorization", value)
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    reply = connection.getresponse()
    headers = {k.lower(): v for k, v in reply.getheaders() if k.lower() != "date"}
    found = reply.status, headers, reply.read()
    connection.close()
    return found


def test_every_wrong_authorization_gets_the_same_401(serve: Serve):
    served = serve()
    answers = [raw(served, "/v1/rollout/init", value) for value in WRONG.values()]
    answers.append(raw(served, f"/v1/rollout/init?key={KEY}&api_key={KEY}", []))
    answers.append(raw(served, "/rollout/any", []))
    answers.append(raw(served, "/no/such/path", []))
    assert all(answer == answers[0] for answer in answers), answers
    status, headers, _ = answers[0]
    assert (status, headers["www-authenticate"]) == (401, "Bearer")


def test_the_scheme_is_read_in_any_case_and_health_needs_no_key(serve: Serve):
    served = serve()
    found = served.ask("GET", "/platform/health", headers={"Authorization": f"bearer {KEY}"})
    assert found.json() == {
        "status": "healthy",
        "agent_loop": "behaving",
        "active_rollouts": 0,
        "completed_rollouts": 0,
        "undelivered_results": 0,
    }
    assert served.health() == found.json()
    assert served.ask("GET", "/platform/health", headers={}).status == 401
    keyless = serve(key=None)
    assert keyless.health()["status"] == "healthy"
    assert keyless.ask("GET", "/platform/health").status == 404


def test_what_is_compared_are_digests_in_constant_time(monkeypatch: pytest.MonkeyPatch):
    seen: list[tuple[Any, Any]] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((a, b)) or real(a, b))
    access = Access(Secret(KEY))
    access.check({"headers": [(b"authorization", f"Bearer {KEY}".encode())]})
    for headers in ([], [(b"authorization", b"Bearer x")]):
        with pytest.raises(Exception, match="API key"):
            access.check({"headers": headers})
    assert len(seen) == 3
    assert all(type(side) is bytes and len(side) == 32 for pair in seen for side in pair)


def scope(server: str, *headers: tuple[bytes, bytes], path: str = "/health") -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": list(headers),
        "server": (server, 9000),
    }


def ask_without_key(scope: dict[str, Any], bodies: list[bytes] | None = None) -> int:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        app = create_app(Behaving())
        await app(scope, receive, send)
        await app._served().service.stop()

    asyncio.run(run())
    if bodies is not None:
        bodies.append(sent[1]["body"])
    return sent[0]["status"]


def test_an_unmodified_application_takes_its_key_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OSMOSIS_SERVER_API_KEY", KEY)
    assert ask_without_key(scope("10.1.2.3")) == 200  # /health is open
    assert ask_without_key(scope("10.1.2.3", path="/platform/health")) == 401
    key = (b"authorization", f"Bearer {KEY}".encode())
    assert ask_without_key(scope("10.1.2.3", key, path="/platform/health")) == 200
    assert create_app(Behaving(), api_key="another-key-1").options.api_key == Secret(
        "another-key-1"
    )
    monkeypatch.setenv("OSMOSIS_SERVER_API_KEY", "with a blank")
    with pytest.raises(ValueError, match=r"^OSMOSIS_SERVER_API_KEY holds a space"):
        create_app(Behaving())


def test_what_a_keyless_server_refuses_names_the_variables(serve: Serve):
    sent: list[bytes] = []
    ask_without_key(scope("10.1.2.3"), sent)
    assert b"set OSMOSIS_SERVER_API_KEY, or give create_app an api_key" in sent[0]
    refused = serve(local=False).init("r", "http://10.0.0.1:8000")
    assert refused.status == 422
    assert "name the trainer's origin in OSMOSIS_ALLOWED_TRAINERS" in refused.json()["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"host", b"127.0.0.1:9000")], 200),
        ([(b"host", b"localhost:9000")], 200),
        ([(b"host", b"[::1]:9000")], 200),
        ([(b"host", b"evil.example:9000")], 403),
        ([(b"host", b"localhost.evil.example")], 403),
        ([(b"host", b"127.0.0.1:9000"), (b"origin", b"https://evil.example")], 403),
    ],
)
def test_without_a_key_only_loopback_is_answered_and_no_web_page_or_rebound_name(
    headers: Any, status: int
):
    assert ask_without_key(scope("127.0.0.1", *headers)) == status
    for elsewhere in ("0.0.0.0", "10.1.2.3", "203.0.113.5", "::", "fe80::1"):
        assert ask_without_key(scope(elsewhere, *headers)) == 403


def test_an_unknown_path_is_404_a_wrong_method_405_and_a_probe_may_ask_for_the_head_alone(
    serve: Serve,
):
    served = serve()
    assert served.ask("GET", "/nothing").status == 404
    for method in ("GET", "HEAD"):
        refused = served.ask(method, "/v1/rollout/init")
        assert (refused.status, refused.headers["allow"]) == (405, "POST")
    found = served.ask("HEAD", "/health", headers={})
    assert (found.status, found.body) == (200, b"")


def test_no_key_is_ever_sent_back(serve: Serve, trainer: Trainer):
    served = serve()
    secret = "the-trainers-own-key-99"
    for body in (
        init_body("r", trainer, api_key=secret, max_turns="x"),
        {"api_key": secret},
        [secret],
        f'{{"api_key": "{secret}", '.encode(),
        init_body("r", trainer, api_key=f"{secret}\r\nX-Injected: 1"),
        init_body(secret + "\n", trainer),
        init_body("r", f"ftp://{secret}"),
    ):
        refused = served.ask("POST", "/v1/rollout/init", body)
        assert refused.status == 422
        assert secret not in refused.body.decode()
