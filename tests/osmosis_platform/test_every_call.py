"""What holds for every call of the API: tokens, identity, versions, hosts, sizes, and no echo."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from osmosis_platform.api.table import ENDPOINTS
from osmosis_platform.http.endpoints import Needs
from osmosis_platform.settings import ServerLimits
from tests.support.platform_server import Account, PlatformServer, serving, submission

LIMITS = ServerLimits(body_bytes=2000)
CALLS = [endpoint for endpoint in ENDPOINTS if "training-runs" not in endpoint.path]
"""Of every kind; what serves evaluations serves training runs too."""
SECRET = "sk-test-never-to-be-seen-again"


@pytest.fixture(scope="module")
def platform_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    """A platform that takes small bodies only, and waits for none."""
    with serving(tmp_path_factory.mktemp("platform"), limits=LIMITS) as server:
        server.add_dataset()
        yield server


def asked_with(
    connection: httpx.Client, account: Account, method: str, path: str, *values: bytes
) -> str:
    """The body of the 401 to a request with these Authorization headers."""
    others = [item for item in account.headers.items() if item[0] != "Authorization"]
    headers = [*others, *(("Authorization", value) for value in values)]
    answer = connection.send(connection.build_request(method, path, headers=headers))
    assert answer.status_code == 401, values
    assert answer.headers["www-authenticate"] == "Bearer"
    return answer.text


@pytest.mark.fault(
    "a request has no token, or one that is wrong, expired, revoked, malformed or given twice"
)
def test_whatever_is_wrong_with_a_token_gets_the_same_answer(
    connection: httpx.Client, platform_server: PlatformServer
):
    account, path = platform_server.account, "/api/cli/verify"
    valid = account.headers["Authorization"].encode()
    values = (
        [],
        [b""],
        [b"Bearer"],
        [b"Bearer wrong"],
        [valid.replace(b"Bearer", b"Basic")],
        ["Bearer t\u00f6ken".encode()],
        [b"Bearer \xff\xfe"],
        [valid, valid],
        [valid + b", " + valid],
        [valid + b" x"],
        [valid.replace(b"Bearer", b"Bearer ")],
    )
    bodies = {asked_with(connection, account, "GET", path, *each) for each in values}
    bodies.add(asked_with(connection, account, "GET", f"{path}?access_token={account.token}"))
    assert len(bodies) == 1


def test_a_call_needs_a_client_that_is_new_enough_and_the_tokens_own_repository(
    connection: httpx.Client, platform_server: PlatformServer, account: Account
):
    own = platform_server.account.headers

    def asked(method: str, path: str, name: str, value: str | None) -> tuple[int, str]:
        headers = {key: value for key, value in own.items() if key != name}
        if value is not None:
            headers[name] = value
        answer = connection.request(method, path, headers=headers)
        return answer.status_code, answer.json()["code"]

    evaluations = ("GET", "/api/cli/eval-runs")
    for call in (("GET", "/api/cli/verify"), evaluations, ("POST", "/api/cli/device/token")):
        assert asked(*call, "X-Osmosis-CLI-Version", None) == (400, "missing_header")
        assert asked(*call, "X-Osmosis-CLI-Version", "0.0.9") == (426, "client_too_old")
    for repository, refused in (
        (account.repository, (403, "wrong_repository")),
        ("Acme/Agents", (400, "invalid_header")),
        ("../..", (400, "invalid_header")),
        (None, (400, "missing_header")),
    ):
        assert asked(*evaluations, "X-Osmosis-Git", repository) == refused


@pytest.mark.fault("a viewer changes something; a member has left the workspace")
def test_a_member_who_left_is_logged_out_and_a_viewer_changes_nothing(
    connection: httpx.Client, platform_server: PlatformServer
):
    viewer = platform_server.add_workspace(role="viewer")
    platform_server.add_dataset(account=viewer)
    for endpoint in ENDPOINTS:
        if endpoint.needs is Needs.WRITE:
            place = endpoint.path.replace("{name}", "x").replace("{id}", "x")
            answer = connection.request(endpoint.method, place, headers=viewer.headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    upload = platform_server.add_dataset(account=viewer, status="uploading")
    seen = connection.get(f"/api/cli/datasets/{upload}/parts", headers=viewer.headers)
    assert seen.json() == {"id": upload, "parts": []}
    platform_server.remove_member(viewer)
    assert connection.get("/api/cli/verify", headers=viewer.headers).status_code == 401


@pytest.mark.fault(
    "a body is too large, never ends, is not JSON, has NaN, a key twice, or deep nesting"
)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"deviceName": "a"', 422),
        (b'{"deviceName": NaN}', 422),
        (b'{"deviceName": "a", "deviceName": "b"}', 422),
        (b'["deviceName"]', 422),
        (b'{"deviceName": "\xff"}', 422),
        (b'{"deviceName": ' + b"[" * 900 + b"]" * 900 + b"}", 422),
        (b'{"deviceName": ' + b"9" * 1900 + b"}", 422),
        (b'{"deviceName": {"' + SECRET.encode() + b'": 1}}', 422),
        (b'{"' + SECRET.encode() + b'": 1}', 422),
        (b'{"deviceName": "\\ud800"}', 422),
        (b" " * 2001, 413),
    ],
)
def test_a_body_that_is_no_good_is_refused_without_an_echo(
    connection: httpx.Client, body: bytes, status: int
):
    headers = {"X-Osmosis-CLI-Version": "0.1.0", "Content-Type": "application/json"}
    for content in (body, iter([body])):
        answer = connection.post("/api/cli/device/authorize", content=content, headers=headers)
        assert answer.status_code == status
        assert SECRET not in answer.text
        assert {"error", "code"} <= set(answer.json())
    headers["Content-Type"] = "text/plain"
    plain = connection.post("/api/cli/device/authorize", content=b"{}", headers=headers)
    assert plain.status_code == 415


_text = st.text(st.characters(codec=None), max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_text, below, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(data=st.data())
def test_no_body_makes_the_platform_fail(
    data: st.DataObject, connection: httpx.Client, platform_server: PlatformServer
):
    endpoint = data.draw(st.sampled_from([each for each in CALLS if each.body is not None]))
    assert endpoint.body is not None
    fields = {name: data.draw(_values) for name in endpoint.body.model_fields}
    if "experiment_config" in fields and data.draw(st.booleans()):
        fields = {**submission(), "env_config": {"A": data.draw(_text)}}
    answer = connection.request(
        endpoint.method,
        endpoint.path.replace("{id}", "x"),
        content=json.dumps(fields),
        headers={**platform_server.account.headers, "Content-Type": "application/json"},
    )
    assert answer.status_code < 500


def exchanged(url: str, head: str, body: bytes = b"") -> bytes:
    """The answer to a request that no HTTP client sends."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as peer:
        peer.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
        return peer.recv(65536)


@pytest.mark.fault(
    "a body is too large, never ends, is not JSON, has NaN, a key twice, or deep nesting"
)
def test_the_token_is_looked_at_before_a_body_is_read_and_a_body_that_never_comes_ends(
    tmp_path: Path,
):
    version = "Host: localhost\nX-Osmosis-CLI-Version: 0.1.0\nContent-Type: application/json\n"
    head = f"POST /api/cli/device/authorize HTTP/1.1\n{version}"
    with serving(tmp_path, limits=ServerLimits(body_timeout_s=0.01)) as server:
        refused = exchanged(
            server.url,
            f"POST /api/cli/eval-runs HTTP/1.1\n{version}Content-Length: 999999999\n",
        )
        announced = exchanged(server.url, f"{head}Content-Length: 999999999\n")
        sent = exchanged(server.url, f"{head}Content-Length: 17000000\n", b" " * 17_000_000)
        waiting = exchanged(server.url, f"{head}Content-Length: 20\n", b"{")
        endless = exchanged(server.url, f"{head}Transfer-Encoding: chunked\n", b"1\r\n{\r\n")
    assert refused.startswith(b"HTTP/1.1 401 ")
    assert announced.startswith(b"HTTP/1.1 413 ")
    assert sent.startswith(b"HTTP/1.1 413 ")
    assert waiting.startswith(b"HTTP/1.1 408 ")
    assert endless.startswith(b"HTTP/1.1 408 ")


@pytest.mark.fault("another site sends a form, or reaches the platform under its own name")
def test_another_host_is_refused_and_another_origin_let_in_on_no_page(
    connection: httpx.Client, platform_server: PlatformServer
):
    own, paths = platform_server.account.headers, ("/api/cli/verify", "/login")
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1@evil", ""):
        for path in (*paths, "/nothing"):
            assert connection.get(path, headers={"Host": host, **own}).status_code == 400, host
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8400"):
        assert connection.get("/login", headers={"Host": name}).status_code == 200
    for method in ("GET", "OPTIONS", "POST"):
        for path in paths:
            headers = {"Origin": "https://evil.example", **own}
            answer = connection.request(method, path, headers=headers)
            assert [name for name in answer.headers if name.startswith("access-control")] == []
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_unknown_path_method_or_query_is_an_error_like_any_other(
    connection: httpx.Client, platform_server: PlatformServer
):
    def asked(method: str, path: str) -> tuple[int, str]:
        answer = connection.request(method, path, headers=platform_server.account.headers)
        return answer.status_code, answer.json()["code"]

    assert asked("GET", "/api/cli/nothing") == (404, "not_found")
    assert asked("PATCH", "/api/cli/verify") == (405, "method_not_allowed")
    assert asked("GET", "/api/cli/verify/") == (404, "not_found")
    assert asked("GET", "/api/cli/verify?a=1") == (422, "invalid_query")
    for query in ("limit=0", "limit=201", "offset=-1", "limit=x", "x=1", "limit=1&limit=2"):
        assert asked("GET", f"/api/cli/eval-runs?{query}") == (422, "invalid_query")


def test_a_failure_of_ours_is_500_and_says_nothing_of_the_request(
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    from osmosis_platform.app import create_app
    from osmosis_platform.execution import admission

    def fail(*args: Any, **values: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(admission, "ready_dataset", fail)
    app = create_app(platform_server.settings, platform_server.database, platform_server.vault)

    async def submit() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = platform_server.account.headers
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/api/cli/eval-runs", json=submission(), headers=headers)

    answer = asyncio.run(submit())
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert SECRET not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"] in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("cause", "answered", "later"),
    [
        ("database is locked", (503, "busy"), "5"),
        ("database or disk is full", (507, "no_space"), None),
    ],
)
def test_a_database_that_cannot_be_written_is_no_failure_and_the_log_says_why(
    connection: httpx.Client,
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cause: str,
    answered: tuple[int, str],
    later: str | None,
):
    def locked(*args: Any) -> None:
        raise OperationalError(f"INSERT {SECRET}", {}, sqlite3.OperationalError(cause))

    monkeypatch.setattr("osmosis_platform.http.endpoints.authenticate", locked)
    answer = connection.get("/api/cli/verify", headers=platform_server.account.headers)
    assert (answer.status_code, answer.json()["code"]) == answered
    assert answer.headers.get("retry-after") == later
    assert f"failed: OperationalError: {cause}" in caplog.text
    assert SECRET not in caplog.text


def test_a_rollout_server_registers_once_and_its_key_is_kept_encrypted(
    connection: httpx.Client, platform_server: PlatformServer
):
    def register(**changes: Any) -> httpx.Response:
        body = {"host": "10.0.0.1", "port": 9000, "agent_loop_name": "a", "api_key": SECRET}
        return connection.post(
            "/api/cli/rollout-server/register",
            json={**body, **changes},
            headers=platform_server.account.headers,
        )

    first, again = register(), register(agent_loop_name="b")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["health_check_result"] == "not checked"
    for changes in ({"port": 0}, {"host": "a/b"}, {"agent_loop_name": ""}, {"api_key": [SECRET]}):
        refused = register(**changes)
        assert (refused.status_code, refused.json()["field"]) == (422, next(iter(changes)))
        assert SECRET not in refused.text
    data = platform_server.settings.data
    files = [path for path in data.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
