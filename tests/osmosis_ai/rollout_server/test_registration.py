from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from osmosis_ai.rollout import create_app
from osmosis_ai.rollout_server.http.uvicorn import configure, listen
from osmosis_ai.rollout_server.trainer import registration
from osmosis_ai.secret import Secret
from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.trainer import KEY, PATIENCE_S, _Running

TOKEN = "token-of-the-login-77"


@dataclass
class Platform:
    """Answers registrations in turn, the last answer for ever."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True)
class Login:
    """What `create_app` takes as credentials."""

    platform_url: str
    token: Secret


@pytest.fixture
def platform() -> Iterator[Platform]:
    found = Platform()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, self.headers["Authorization"], body))
            answers = found.answers
            status, content = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.send_header("Location", f"{found.url}/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def register(platform: Platform, caplog: pytest.LogCaptureFixture) -> str:
    """Start a server with a login, wait until it has told what became of it."""
    caplog.set_level(logging.INFO, logger="osmosis")
    told = threading.Event()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("regist"):
                told.set()

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
    assert told.wait(PATIENCE_S)
    running.stop()
    logging.getLogger("osmosis").removeHandler(handler)
    assert TOKEN not in caplog.text
    assert KEY not in caplog.text
    return caplog.text


def test_the_server_registers_at_a_platform_that_is_busy_for_a_moment(
    platform: Platform, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    in_loops: list[bool] = []
    advertised = registration._advertised

    def noted(host: str, platform_url: str) -> str:
        in_loops.append(asyncio._get_running_loop() is not None)
        return advertised(host, platform_url)

    monkeypatch.setattr(registration, "_advertised", noted)
    done = b'{"id": "srv-1", "status": "ok", "health_check_result": "ok"}'
    platform.answers = [(503, b"{}"), (502, b"<html>"), (201, done)]
    assert "registered" in register(platform, caplog)
    assert len(platform.asked) == 3
    for path, authorization, body in platform.asked:
        assert (path, authorization) == ("/api/cli/rollout-server/register", f"Bearer {TOKEN}")
        message = (body["host"], body["agent_loop_name"], body["api_key"])
        assert message == ("127.0.0.1", "asking", KEY)
    assert in_loops == [False]  # a name is not looked up in the server's event loop


@pytest.mark.parametrize(
    ("status", "content", "sentence"),
    [
        (401, b'{"error": "expired"}', "set OSMOSIS_TOKEN to a valid token"),
        (403, b"{}", "does not allow this"),
        (422, b'{"message": "host cannot be reached"}', "host cannot be reached"),
        (302, b"", "redirects to another address, which is not followed"),
        (200, b"<html>", "not JSON"),
        (200, b"[]", "is no JSON object"),
        (500, json.dumps({"error": f"boom {TOKEN} {KEY}"}).encode(), "boom *** ***"),
    ],
)
def test_a_registration_that_fails_is_a_warning(
    platform: Platform,
    caplog: pytest.LogCaptureFixture,
    status: int,
    content: bytes,
    sentence: str,
):
    platform.answers = [(status, content)]
    text = register(platform, caplog)
    assert "registration_failed" in text
    assert sentence in text
    assert len(platform.asked) == 1


def test_every_address_is_reported_as_the_one_that_the_platform_sees():
    assert registration._advertised("0.0.0.0", "http://127.0.0.1:8000") == "127.0.0.1"
    assert registration._advertised("::", "http://[::1]:8000") in ("::1", "::")
    assert registration._advertised("server.example", "http://127.0.0.1") == "server.example"
