"""What holds for every route of the application, those of pages and uploads too.

The routes are taken from the application itself. One with an object in its path that this file does
not know fails here until `OBJECTS` says which object that is.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select
from starlette.routing import Route

from osmosis_platform.accounts import browsers
from osmosis_platform.app import create_app
from osmosis_platform.database.models import Base, User
from osmosis_platform.pages.forms import SESSION_COOKIE, form_token
from osmosis_platform.settings import ServerLimits
from tests.support.platform_server import Account, PlatformServer, serving

FOR_EVERYBODY = {
    "GET /": "leads to the login",
    "GET /login": "",
    "POST /login": "a form",
    "GET /static/{name}": "",
    "GET /health": "",
    "GET /health/ready": "",
    "POST /api/cli/device/authorize": "no token yet",
    "POST /api/cli/device/token": "no token yet",
}
"""Routes that ask for no login. What is not here must refuse a request without one."""

OBJECTS = {
    "eval-runs": "run",
    "training-runs": "training_run",
    "datasets": "dataset",
    "tokens": "token",
    "uploads": "dataset",
    "w": "workspace",
    "runs": "run",
    "members": "user",
    "static": "file",
}
"""What a parameter of a path stands for, by the segment before it."""

FORM = {"role": "viewer", "name": "A_NAME", "value": "a-value", "scope": "user", "decision": "x"}
IMPATIENT = ServerLimits(body_timeout_s=0.01, upload_pause_s=0.01, device_interval_s=0)


@dataclass(frozen=True)
class Asked:
    """One method of one path."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_page(self) -> bool:
        return not self.path.startswith(("/api/", "/uploads/", "/health", "/static/"))

    def filled(self, objects: dict[str, str], *, workspace: str = "") -> str:
        """The path with objects in it."""
        before, found = "", []
        for part in self.path.split("/"):
            if part.startswith("{"):
                found.append(self._value(part, before, objects, workspace))
            else:
                found.append(part)
                before = part
        return "/".join(found)

    def _value(self, part: str, before: str, objects: dict[str, str], workspace: str) -> str:
        if part == "{number}":
            return "1"
        assert before in OBJECTS, f"{self}: say in OBJECTS what {part} behind {before}/ is"
        kind = OBJECTS[before]
        return workspace if kind == "workspace" and workspace else objects[kind]


@pytest.fixture(scope="module")
def platform_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    """A platform that waits for no body."""
    with serving(tmp_path_factory.mktemp("platform")) as server:
        yield server


@pytest.fixture(scope="module")
def routes(platform_server: PlatformServer) -> list[Asked]:
    """Every route of the application."""
    app = create_app(platform_server.settings, platform_server.database, platform_server.vault)
    found = []
    for route in app.routes:
        assert isinstance(route, Route), f"{route}: a walk does not see what is mounted"
        assert route.methods is not None, f"{route.path}: say its methods"
        found += [Asked(method, route.path) for method in sorted(route.methods - {"HEAD"})]
    assert len(found) == len(set(found)) > 40
    return found


@pytest.fixture(scope="module")
def objects(platform_server: PlatformServer) -> dict[str, str]:
    """Objects of the first workspace."""
    account = platform_server.account
    run_id = platform_server.add_run(name="name-of-the-first", status="running")
    platform_server.add_log(run_id, "log-of-the-first")
    platform_server.add_secret("SECRET_OF_THE_FIRST", scope="workspace")
    return {
        "workspace": account.workspace,
        "run": run_id,
        "training_run": platform_server.add_run("training", name="training-of-the-first"),
        "dataset": platform_server.add_dataset("dataset-of-the-first", status="uploading"),
        "token": account.token_id,
        "user": account.user_id,
        "file": "page.css",
    }


@dataclass(frozen=True)
class Stranger:
    """A user of another workspace, by token and by browser."""

    account: Account
    cookie: str
    form: str

    def headers(self, asked: Asked) -> dict[str, str]:
        if asked.is_page:
            return {"Cookie": f"{SESSION_COOKIE}={self.cookie}"}
        return self.account.headers

    def body(self, asked: Asked) -> dict[str, Any]:
        if asked.method == "GET":
            return {}
        if asked.is_page:
            return {"data": {"token": self.form, **FORM}}
        return {"json": {}}


@pytest.fixture(scope="module")
def stranger(platform_server: PlatformServer) -> Stranger:
    account = platform_server.add_workspace()
    with platform_server.database.writing() as session:
        cookie = browsers.start(session, session.get_one(User, account.user_id), 3600)
    return Stranger(account, cookie, form_token(platform_server.vault, cookie))


def everything(platform: PlatformServer) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with platform.database.reading() as session:
        return {
            table.name: sorted(map(tuple, session.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }


def test_what_asks_for_no_login_is_listed_and_the_rest_refuses_a_request_without_one(
    routes: list[Asked],
    objects: dict[str, str],
    connection: httpx.Client,
    platform_server: PlatformServer,
):
    assert set(FOR_EVERYBODY) <= set(map(str, routes))
    account = platform_server.account
    revoked = platform_server.add_token(account)
    platform_server.revoke(revoked)
    expired = platform_server.add_token(account, expires_s=-1)
    others = {key: value for key, value in account.headers.items() if key != "Authorization"}
    logins = [{}, *({"Authorization": f"Bearer {each}"} for each in ("wrong", revoked, expired))]
    logins += [{"Cookie": f"{SESSION_COOKIE}={each}"} for each in ("wrong", account.token)]
    before = everything(platform_server)
    for asked in routes:
        if str(asked) in FOR_EVERYBODY:
            continue
        is_form = asked.is_page and asked.method == "POST"
        body: dict[str, Any] = {"data": {"token": "wrong", **FORM}} if is_form else {}
        answers = [
            connection.request(
                asked.method, asked.filled(objects), headers={**others, **each}, **body
            )
            for each in logins
        ]
        statuses = {answer.status_code for answer in answers}
        wanted = {303} if asked.is_page and asked.method == "GET" else {401, 403}
        assert (asked, len(statuses), statuses <= wanted) == (asked, 1, True), statuses
        for led in answers if statuses == {303} and asked.path.startswith("/w/") else ():
            assert led.headers["location"].startswith("/login?next=%2Fw%2F"), asked
        texts = {answer.text.replace(account.token, "") for answer in answers}
        assert (asked, len(texts)) == (asked, 1)
    assert everything(platform_server) == before


@pytest.mark.fault("a user asks for what is another workspace's")
def test_what_is_another_workspaces_is_404_and_stays_as_it_is(
    routes: list[Asked],
    objects: dict[str, str],
    stranger: Stranger,
    connection: httpx.Client,
    platform_server: PlatformServer,
):
    own = stranger.account.workspace
    connection.get("/api/cli/verify", headers=stranger.account.headers)  # notes that it is used
    before = everything(platform_server)
    for asked in routes:
        if "{" not in asked.path or asked.path.startswith(("/static/", "/uploads/")):
            continue
        paths = {asked.filled(objects), asked.filled(objects, workspace=own)}
        if asked.path.count("{") == asked.path.count("{workspace}"):
            paths.discard(asked.filled(objects, workspace=own))  # a page of the stranger's own
        for path in paths:
            answer = connection.request(
                asked.method, path, headers=stranger.headers(asked), **stranger.body(asked)
            )
            assert (str(asked), path, answer.status_code) == (str(asked), path, 404)
            absent = connection.request(
                asked.method,
                _unknown(path, objects),
                headers=stranger.headers(asked),
                **stranger.body(asked),
            )
            assert answer.text == absent.text
    assert everything(platform_server) == before


def _unknown(path: str, objects: dict[str, str]) -> str:
    """The path with names and ids that no object has."""
    parts = ("no-such" if part in objects.values() else part for part in path.split("/"))
    return "/".join(parts)


def test_no_list_of_a_second_workspace_names_anything_of_the_first(
    routes: list[Asked],
    objects: dict[str, str],
    stranger: Stranger,
    connection: httpx.Client,
    platform_server: PlatformServer,
):
    account = platform_server.account
    own = {**objects, "workspace": stranger.account.workspace}
    names = [account.user_id, account.workspace_id, account.repository, "THE_FIRST"]
    names += ["of-the-first", *(objects[kind] for kind in ("run", "dataset", "token"))]
    for asked in routes:
        is_own = asked.path.count("{") == asked.path.count("{workspace}")
        if asked.method != "GET" or not is_own:
            continue
        answer = connection.get(asked.filled(own), headers=stranger.headers(asked))
        assert answer.status_code < 500
        assert (asked, [name for name in names if name in answer.text]) == (asked, [])


def test_a_forged_host_is_refused_whatever_the_login(
    routes: list[Asked],
    objects: dict[str, str],
    stranger: Stranger,
    connection: httpx.Client,
    platform_server: PlatformServer,
):
    for asked in routes:
        login = {**platform_server.account.headers, **stranger.headers(asked)}
        headers = {**login, "Host": "localhost.evil.example"}
        answer = connection.request(asked.method, asked.filled(objects), headers=headers)
        assert (asked, answer.status_code) == (asked, 400)
        assert answer.json()["code"] == "wrong_host"


@pytest.fixture
def _impatient(platform_server: PlatformServer) -> Iterator[None]:
    """Let the platform wait for no body; a busy machine would be refused elsewhere."""
    limits = platform_server.settings.limits
    object.__setattr__(platform_server.settings, "limits", IMPATIENT)
    yield
    object.__setattr__(platform_server.settings, "limits", limits)


@pytest.mark.slow
@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    ("length", "body"),
    [
        ("Content-Length: 999999999999", b""),
        ("Content-Length: 20", b"{"),
        ("Transfer-Encoding: chunked", b"1\r\n{\r\n"),
    ],
    ids=["oversize", "slow", "endless"],
)
def test_a_body_that_is_too_long_or_never_comes_is_answered_and_makes_nothing_fail(
    routes: list[Asked],
    objects: dict[str, str],
    stranger: Stranger,
    platform_server: PlatformServer,
    length: str,
    body: bytes,
):
    own = {**objects, "workspace": stranger.account.workspace}
    kinds = {True: "application/x-www-form-urlencoded", False: "application/json"}
    for asked in routes:
        headers = {
            **stranger.headers(asked), "Host": "localhost", "Content-Type": kinds[asked.is_page]
        }  # fmt: skip
        lines = [f"{asked.method} {asked.filled(own)} HTTP/1.1", length]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        status = _status(platform_server.url, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        refused = asked.method in ("GET", "DELETE") or 400 <= status < 500
        assert (str(asked), status < 500, refused) == (str(asked), True, True), status


def _status(url: str, request: bytes) -> int:
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as peer:
        peer.sendall(request)
        return int(peer.recv(65536).split(b" ", 2)[1])


def test_a_nul_in_a_path_or_a_name_is_refused_and_no_failure(
    routes: list[Asked],
    objects: dict[str, str],
    stranger: Stranger,
    connection: httpx.Client,
):
    for asked in routes:
        if "{" not in asked.path:
            continue
        path = asked.filled(dict.fromkeys(objects, "%00a"), workspace=stranger.account.workspace)
        answer = connection.request(
            asked.method, path, headers=stranger.headers(asked), **stranger.body(asked)
        )
        assert (asked, 200 <= answer.status_code < 500) == (asked, True), answer.status_code
