"""One question to a model."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from osmosis_executors import question

KEY = "sk-not-to-be-shown-0123456789"


class Refuses(BaseHTTPRequestHandler):
    """Answers that the key is wrong, and quotes it."""

    def do_POST(self) -> None:
        body = b'{"error": {"message": "Incorrect API key: %s", "type": "x"}}' % KEY.encode()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        """Print nothing."""


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of an endpoint that refuses every key."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def test_the_embedded_model_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert question.main("embedded") == 0
    assert capsys.readouterr().out == ""


def test_a_key_that_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert question.main("openai/gpt-5-mini") == 1
    assert capsys.readouterr().out == (
        "API key: OPENAI_API_KEY is not set: set it with `osmosis secret set`, and name it in "
        "[secrets]\n"
    )


def test_a_key_that_would_be_read_along_is_told_how_a_submitted_run_sends_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway.internal/v1")
    assert question.main("openai/gpt-5-mini") == 1
    assert capsys.readouterr().out == (
        "API key: OPENAI_API_KEY is not sent over plain http to gateway.internal: give its "
        "address with https://\n"
    )


@pytest.mark.slow
def test_a_key_that_the_provider_refuses_is_told_without_it(refusing: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "osmosis_executors.question", "openai/gpt-5-mini"],
        env={**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": refusing},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "the key in OPENAI_API_KEY was refused" in done.stdout
    assert "401" in done.stdout or "key" in done.stdout
    assert KEY not in done.stdout + done.stderr
