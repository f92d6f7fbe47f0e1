"""A platform on loopback that records what it gets, and answers as a test says.

`answers` maps a method and path to a document, or to a function of the request that returns a
status and a document. `fault` names what happens to every request instead; see `FAULTS`.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

TOKEN = "token-of-the-login-4711"
ESCAPES = "\x1b[31mno\u202e"
STATUSES = {
    "401": (401, {"error": "token revoked", "code": "token_revoked"}),
    "403": (403, {"error": "members cannot do this"}),
    "404": (404, {"message": "not here"}),
    "409": (409, {"error": "it has finished", "code": "finished"}),
    "422": (422, {"error": "must be 1 or more", "field": "limit", "details": {"least": 1}}),
    "426": (426, {"error": "0.9 or newer is needed"}),
    "429": (429, {"error": "slow down; try again in a minute"}),
    "500": (500, {"error": f"{ESCAPES} {TOKEN} https://me:secret@db.example/x?key=1"}),
}
FAULTS = (
    *STATUSES, "html", "redirect", "not json", "list", "slow", "silent", "huge",
    "hang up",
)  # fmt: skip
FAULTS_OF_COMMANDS = ("401", "500", "redirect", "html", "silent", "hang up")
"""Of each sort one: that the client has a sentence for every fault is a test of the client."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    """Still percent-encoded, without the query."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: Any


Answer = dict[str, Any] | Callable[[Request], tuple[int, Any]]


@dataclass
class FakePlatform:
    """What it gets and what it answers."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    fault: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with every answer."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set when the silent ones may go."""

    def clear(self) -> None:
        """Forget what was asked for, and how to answer."""
        self.requests.clear()
        self.answers.clear()
        self.headers.clear()
        self.fault = None

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return the status and the document for a request."""
        found = self.answers.get((request.method, request.path))
        if found is None:
            return 404, {"error": f"no route {request.method} {request.path}"}
        return found(request) if callable(found) else (200, found)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a login here."""
        return {
            "OSMOSIS_TOKEN": TOKEN,
            "OSMOSIS_PLATFORM_URL": self.url,
            "OSMOSIS_TOKEN_PLATFORM_URL": self.url,
        }


CERTIFICATE = Path(__file__).parent / "certificates" / "self_signed.pem"


@contextmanager
def fake_platform(*, tls: bool = False) -> Iterator[FakePlatform]:
    """Serve a platform from a thread; with `tls` as localhost, with `CERTIFICATE`."""
    platform = FakePlatform()
    handler = type("Handler", (_Handler,), {"platform": platform})
    server = _Server(("127.0.0.1", 0), handler)
    platform.url = f"http://127.0.0.1:{server.server_port}"
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        platform.url = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield platform
    finally:
        platform.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def served() -> Iterator[FakePlatform]:
    """The platform of a module's tests."""
    with fake_platform() as platform:
        yield platform


@pytest.fixture
def platform(served: FakePlatform) -> FakePlatform:
    """The module's platform, without what another test has asked or wished."""
    served.clear()
    return served


class _Server(ThreadingHTTPServer):
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # the client has gone, as it should
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    platform: FakePlatform
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def _take(self) -> None:
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(
            self.command,
            target.path,
            dict(parse_qsl(target.query)),
            {name.lower(): value for name, value in self.headers.items()},
            self._decoded(body),
        )
        self.platform.requests.append(request)
        fault = self.platform.fault
        if fault is None or fault in STATUSES:
            status, document = STATUSES[fault] if fault else self.platform.answer(request)
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self._send(status, content, "application/json")
        else:
            self._fail(fault)

    do_GET = do_POST = do_PUT = do_DELETE = _take

    def _decoded(self, body: bytes) -> Any:
        if self.headers.get("Content-Type") == "application/json":
            return json.loads(body)
        return body or None

    def _fail(self, fault: str) -> None:
        if fault == "html":
            self._send(200, b"<html><title>Welcome</title></html>", "text/html")
        elif fault == "not json":
            self._send(200, b"{", "application/json")
        elif fault == "list":
            self._send(200, b"[]", "application/json")
        elif fault == "redirect":
            self.platform.headers["Location"] = "http://me:secret@127.0.0.1:9/elsewhere?a=b"
            self._send(302, b"", "text/plain")
        elif fault == "silent":
            self.platform.released.wait(30)
            self.close_connection = True
        elif fault in ("slow", "huge"):
            self._go_on(b" " * (1 if fault == "slow" else 1 << 20))
        else:
            self.close_connection = True

    def _go_on(self, piece: bytes) -> None:
        """Send pieces until the client goes."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.close_connection = True
        while not self.platform.released.wait(0.001):
            self.wfile.write(piece)
            self.wfile.flush()

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Request-ID", "req-77")
        for name, value in self.platform.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass
