"""What an operator sees: health, and the platform's own log."""

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
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from starlette.types import Message

from osmosis_executors.local import LocalExecutor
from osmosis_platform import app
from osmosis_platform.app import create_app
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.execute import Services
from osmosis_platform.execution.scheduler import Scheduler
from osmosis_platform.http import log
from tests.support.platform_server import PlatformServer

SECRET = "sk-never-to-be-logged"


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged, as JSON lines."""
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    handler, logger = Kept(), logging.getLogger("osmosis_platform")
    handler.setFormatter(log.JsonLines())
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_health_needs_no_token_and_says_nothing_more(connection: httpx.Client):
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


def test_a_platform_whose_tables_are_others_or_whose_disk_is_full_lives_and_is_not_ready(
    connection: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    newest = app.NEWEST
    monkeypatch.setattr(app, "NEWEST", "0000")
    monkeypatch.setattr(app.shutil, "disk_usage", lambda data: SimpleNamespace(free=4096))
    assert said_of_the_database(connection) == (503, "of another version")
    assert connection.get("/health/ready").json()["checks"]["disk"] == "full"
    monkeypatch.setattr(app, "NEWEST", newest)
    assert said_of_the_database(connection) == (503, "ok")


@pytest.mark.fault("the database is locked, read-only or full")
@pytest.mark.parametrize(
    ("cause", "message"),
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
    connection: httpx.Client, monkeypatch: pytest.MonkeyPatch, cause: Exception, message: str
):
    def refuse(*args: object) -> None:
        raise OperationalError(SECRET, {}, cause)

    monkeypatch.setattr(app, "writable_revision", refuse)
    assert said_of_the_database(connection) == (503, message)


@pytest.mark.fault("the database is locked, read-only or full")
def test_a_database_that_another_writes_for_long_is_said_to_be_locked(
    connection: httpx.Client,
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
):
    if not platform_server.database.is_sqlite:
        pytest.skip("PostgreSQL locks rows, not databases")
    monkeypatch.setattr(app, "_WAIT_MS", 1)
    with platform_server.database.writing() as session:
        session.execute(select(1))
        assert said_of_the_database(connection) == (503, "locked")
    assert said_of_the_database(connection) == (200, "ok")
    messages = [json.loads(line)["message"] for line in lines]
    assert "not ready: the database: OperationalError: database is locked" in messages


def test_a_scheduler_says_whether_it_takes_runs(
    platform_server: PlatformServer,
):
    database, data = platform_server.database, platform_server.settings.data
    services = Services(
        data, Claims(database, "x"), platform_server.vault, LocalExecutor(), threading.Event()
    )
    scheduler = Scheduler(services, max_runs=3)
    assert not scheduler.takes_runs
    scheduler.start()
    assert scheduler.takes_runs
    scheduler.stop()
    assert not scheduler.takes_runs


def test_a_request_is_one_line_with_its_route_and_nothing_that_was_sent(
    connection: httpx.Client, platform_server: PlatformServer, lines: list[str]
):
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


@pytest.mark.parametrize("formatter", [log.JsonLines(), log.Text()])
def test_of_an_exception_the_log_has_the_place_and_not_the_text(formatter):
    try:
        raise ValueError(SECRET)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), sys.exc_info())
    text = formatter.format(record)
    assert SECRET not in text
    assert "ValueError" in text
    assert f"{__name__.rpartition('.')[2]}.py:" in text


def test_a_line_has_a_time_a_level_and_what_happened():
    record = logging.LogRecord("x", logging.WARNING, "", 1, "so many: %d", (3,), None)
    record.created, record.msecs = 0.0, 5.0
    assert log.Text().format(record) == "1970-01-01T00:00:00.005Z WARNING so many: 3"


@pytest.mark.parametrize("path", ["/api/cli/device/authorize", "/login"])
def test_a_client_that_leaves_before_its_body_is_whole_is_no_failure(
    platform_server: PlatformServer, caplog: pytest.LogCaptureFixture, path: str
):
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
