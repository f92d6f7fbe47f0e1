from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from osmosis_ai.rollout import create_app
from osmosis_ai.rollout_server.http.uvicorn import configure, listen
from osmosis_ai.rollout_server.trainer import registration
from osmosis_ai.secret import Secret
from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.trainer import KEY, PATIENCE_S, _Running
from tests.support.fake_platform import TOKEN, FakePlatform, fake_platform

REGISTER = "/api/cli/rollout-server/register"


@dataclass(frozen=True)
class Login:
    """What `create_app` takes as credentials."""

    platform_url: str
    token: Secret


@pytest.fixture
def platform() -> Iterator[FakePlatform]:
    with fake_platform() as platform:
        platform.headers["Location"] = f"{platform.url}/elsewhere"
        yield platform


def register(platform: FakePlatform, caplog: pytest.LogCaptureFixture) -> str:
    """Start a server with a login, wait until it has reported how that ended."""
    caplog.set_level(logging.INFO, logger="osmosis")
    reported = threading.Event()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("regist"):
                reported.set()

    handler = Listening()
    logging.getLogger("osmosis").addHandler(handler)
    bound = listen("127.0.0.1", 0)
    app = create_app(
        Asking(),
        api_key=KEY,
        credentials=Login(platform.url, Secret(TOKEN, "OSMOSIS_TOKEN")),
        server_host="127.0.0.1",
        server_port=bound.getsockname()[1],
    )
    running = _Running(configure(app), bound)
    assert reported.wait(PATIENCE_S)
    running.stop()
    logging.getLogger("osmosis").removeHandler(handler)
    assert TOKEN not in caplog.text
    assert KEY not in caplog.text
    return caplog.text


def test_the_server_registers_at_a_platform_that_is_busy_for_a_moment(
    platform: FakePlatform, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    in_loops: list[bool] = []
    advertised = registration._advertised

    def noted(host: str, platform_url: str) -> str:
        in_loops.append(asyncio._get_running_loop() is not None)
        return advertised(host, platform_url)

    monkeypatch.setattr(registration, "_advertised", noted)
    done = {"id": "srv-1", "status": "ok", "health_check_result": "ok"}
    answers = iter([(503, {}), (502, b"<html>"), (201, done)])
    platform.answers["POST", REGISTER] = lambda request: next(answers)
    assert "registered" in register(platform, caplog)
    assert len(platform.requests) == 3
    for request in platform.requests:
        assert request.path == REGISTER
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        sent = [request.body[name] for name in ("host", "agent_loop_name", "api_key")]
        assert sent == ["127.0.0.1", "asking", KEY]
    assert in_loops == [False]  # a name is not looked up in the server's event loop


@pytest.mark.parametrize(
    ("status", "content", "sentence"),
    [
        (401, {"error": "expired"}, "set OSMOSIS_TOKEN to a valid token"),
        (403, {}, "does not allow this"),
        (422, {"message": "host cannot be reached"}, "host cannot be reached"),
        (302, b"", "redirects to another address, which is not followed"),
        (200, b"<html>", "not JSON"),
        (200, [], "is no JSON object"),
        (500, {"error": f"boom {TOKEN} {KEY}"}, "boom *** ***"),
    ],
)
def test_a_registration_that_fails_is_a_warning(
    platform: FakePlatform,
    caplog: pytest.LogCaptureFixture,
    status: int,
    content: Any,
    sentence: str,
):
    platform.answers["POST", REGISTER] = lambda request: (status, content)
    text = register(platform, caplog)
    assert "registration_failed" in text
    assert sentence in text
    assert len(platform.requests) == 1


def test_every_address_is_reported_as_the_one_that_the_platform_sees():
    assert registration._advertised("0.0.0.0", "http://127.0.0.1:8000") == "127.0.0.1"
    assert registration._advertised("::", "http://[::1]:8000") in ("::1", "::")
    assert registration._advertised("server.example", "http://127.0.0.1") == "server.example"
