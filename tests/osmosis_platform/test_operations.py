"""What an operator sees: health, figures, and the platform's own log."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from starlette.types import Message

from osmosis_ai.secret import Secret
from osmosis_executors.local import LocalExecutor
from osmosis_platform import app
from osmosis_platform.app import create_app
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.execute import Services
from osmosis_platform.execution.scheduler import Scheduler
from osmosis_platform.http.observing import ObservedRequest
from osmosis_platform.operations import logs
from osmosis_platform.operations.metrics import Metrics
from tests.support.platform_server import PlatformServer, serving

TOKEN = "a-token-of-the-operator"
SECRET = "sk-never-to-be-logged"


@pytest.fixture(scope="module")
def platform_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    """A platform whose operator has set a token."""
    token = Secret(TOKEN, "--metrics-token-file")
    with serving(tmp_path_factory.mktemp("platform"), metrics_token=token) as server:
        yield server


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged, as JSON lines."""
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    handler, logger = Kept(), logging.getLogger("osmosis_platform")
    handler.setFormatter(logs.JsonLines())
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(before)


def figures(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every figure by its name and the values of its labels."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_health_needs_no_token_and_says_nothing_more(connection: httpx.Client) -> None:
    assert connection.get("/health").json() == {"status": "ok"}
    ready = connection.get("/health/ready")
    assert (ready.status_code, ready.json()) == (
        200,
        {"status": "ok", "checks": {"database": "ok", "disk": "ok"}},
    )


def said_of_the_database(connection: httpx.Client) -> tuple[int, str]:
    ready = connection.get("/health/ready")
    assert connection.get("/health").status_code == 200
    assert SECRET not in ready.text
    return ready.status_code, ready.json()["checks"]["database"]


def test_a_platform_whose_tables_are_others_lives_and_is_not_ready(
    connection: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "NEWEST", "0000")
    assert said_of_the_database(connection) == (503, "of another version")


@pytest.mark.fault("the database is locked, read-only or full")
@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (Exception(SECRET), "unreachable"),
        (sqlite3.OperationalError("unable to open database file"), "unreachable"),
        (sqlite3.OperationalError("database or disk is full"), "full"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "read-only"),
        (type("LockNotAvailable", (Exception,), {})(SECRET), "locked"),
        (type("ReadOnlySqlTransaction", (Exception,), {})(SECRET), "read-only"),
    ],
)
def test_a_platform_whose_database_cannot_be_used_says_why(
    connection: httpx.Client, monkeypatch: pytest.MonkeyPatch, cause: Exception, told: str
) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError(SECRET, {}, cause)

    monkeypatch.setattr(app, "writable_revision", refuse)
    assert said_of_the_database(connection) == (503, told)


@pytest.mark.fault("the database is locked, read-only or full")
def test_a_database_that_another_writes_for_long_is_said_to_be_locked(
    connection: httpx.Client,
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
) -> None:
    if not platform_server.database.is_sqlite:
        pytest.skip("PostgreSQL locks rows, not databases")
    monkeypatch.setattr(app, "_WAIT_MS", 1)
    with platform_server.database.writing() as session:
        session.execute(select(1))
        assert said_of_the_database(connection) == (503, "locked")
    assert said_of_the_database(connection) == (200, "ok")
    told = [json.loads(line)["message"] for line in lines]
    assert "not ready: the database: OperationalError: database is locked" in told


def test_a_platform_whose_disk_is_full_is_not_ready(
    connection: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.shutil, "disk_usage", lambda data: SimpleNamespace(free=4096))
    ready = connection.get("/health/ready")
    assert (ready.status_code, ready.json()["checks"]["disk"]) == (503, "full")


def test_the_figures_are_for_the_operators_token_alone(
    connection: httpx.Client, platform_server: PlatformServer
) -> None:
    wrong = [{}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {TOKEN}"}]
    wrong += [{"Authorization": platform_server.account.headers["Authorization"]}]
    answers = [connection.get("/metrics", headers=headers) for headers in wrong]
    assert {(answer.status_code, answer.text) for answer in answers} == {(401, answers[0].text)}
    given = connection.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert given.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert given.status_code == 200


def test_the_figures_count_runs_and_requests_and_name_no_workspace(
    connection: httpx.Client, platform_server: PlatformServer
) -> None:
    account = platform_server.add_workspace()
    platform_server.add_run(account=account, status="finished", name="a-name")
    platform_server.add_run(account=account)
    for path in ("/api/cli/eval-runs/a-name", "/api/cli/eval-runs/none", "/nothing/a-name"):
        connection.get(path, headers=account.headers)
    connection.request("BREW", "/health")
    text = connection.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    found = figures(text)
    assert found["osmosis_runs", ("evaluation", "pending")] >= 1
    assert found["osmosis_runs", ("evaluation", "finished")] >= 1
    assert found["osmosis_runs_oldest_pending_seconds", ()] >= 0
    route = "/api/cli/eval-runs/{name}"
    for status in ("200", "404"):
        assert found["osmosis_http_requests_total", ("GET", route, status)] == 1
    assert found["osmosis_http_requests_total", ("GET", "(none)", "404")] == 1
    assert found["osmosis_http_request_duration_seconds_count", ("GET", route)] == 2
    assert found["osmosis_data_free_bytes", ()] > 0
    assert found["process_resident_memory_bytes", ()] > 0
    assert "BREW" not in text
    for name in ("a-name", account.user, account.workspace, account.repository, TOKEN):
        assert name not in text


def test_without_a_token_of_the_operators_there_are_no_figures(tmp_path_factory) -> None:
    with serving(tmp_path_factory.mktemp("platform")) as server:
        answer = httpx.get(
            f"{server.url}/metrics", headers={"Authorization": "Bearer x"}, verify=False
        )
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_scheduler_shows_how_much_it_executes_and_whether_it_takes_more(
    platform_server: PlatformServer,
) -> None:
    database, data = platform_server.database, platform_server.settings.data
    services = Services(
        data, Claims(database, "x"), platform_server.vault, LocalExecutor(), threading.Event()
    )
    scheduler = Scheduler(services, max_runs=3)
    assert not scheduler.takes_runs
    services.shutdown.set()
    scheduler.start()
    scheduler.stop()
    found = figures(Metrics(database, data, scheduler).text().decode())
    assert found["osmosis_runs_at_once", ()] == 3
    assert found["osmosis_runs_executing", ()] == 0


def test_a_request_is_one_line_with_its_route_and_nothing_that_was_sent(
    connection: httpx.Client, platform_server: PlatformServer, lines: list[str]
) -> None:
    account = platform_server.account
    body = {"name": "A_KEY", "value": SECRET, "scope": "user"}
    answer = connection.post(
        f"/api/cli/environment-secrets?x={SECRET}", json=body, headers=account.headers
    )
    connection.get(f"/api/cli/eval-runs/{SECRET}", headers=account.headers)
    connection.get("/health")  # is answered when those before have been logged
    first, second = map(json.loads, lines[:2])
    duration_ms, moment = first.pop("duration_ms"), first.pop("time")
    assert (duration_ms > 0, moment[-5:-4], moment[-1]) == (True, ".", "Z")
    assert "in " in first.pop("message")
    assert first == {
        "level": "info",
        "logger": "osmosis_platform.requests",
        "request_id": answer.headers["x-request-id"],
        "method": "POST",
        "route": "/api/cli/environment-secrets",
        "status": 422,
        "user": account.user,
    }
    assert (second["route"], second["status"]) == ("/api/cli/eval-runs/{name}", 404)
    for text in lines:
        assert SECRET not in text
        assert account.token not in text


@pytest.mark.parametrize("formatter", [logs.JsonLines(), logs.Text()])
def test_of_an_exception_the_log_has_the_place_and_not_the_text(formatter) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), sys.exc_info())
    text = formatter.format(record)
    assert SECRET not in text
    assert "ValueError" in text
    assert f"{__name__.rpartition('.')[2]}.py:" in text


def test_a_line_has_a_time_a_level_and_what_happened() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 1, "so many: %d", (3,), None)
    record.created, record.msecs = 0.0, 5.0
    assert logs.Text().format(record) == "1970-01-01T00:00:00.005Z WARNING so many: 3"
    exchange = ObservedRequest("GET", "/health", 200, 0.5, "abc", None)
    logs.log_exchange(exchange)  # at a level that is not shown


@pytest.mark.parametrize("path", ["/api/cli/device/authorize", "/login"])
def test_a_client_that_leaves_before_its_body_is_whole_is_no_failure(
    platform_server: PlatformServer, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    caplog.set_level(logging.INFO)
    arriving = [{"type": "http.request", "body": b"{", "more_body": True}]
    answered: list[Message] = []

    async def receive() -> Message:
        return arriving.pop() if arriving else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answered.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    client = {"method": "POST", "path": path, "query_string": b"", "headers": headers}
    app = create_app(platform_server.settings, platform_server.database, platform_server.vault)
    asyncio.run(app({"type": "http", **client}, receive, send))
    assert answered[0]["status"] == 400
    assert [record.levelname for record in caplog.records if "POST" in record.message] == ["INFO"]
