"""A hub of datasets on loopback, as `huggingface_hub` asks one: listings, redirect-free files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from huggingface_hub import (
    HfApi,  # noqa: F401  # imported once, not by each session
    constants,
    hf_hub_download,  # noqa: F401
)

COMMIT = "c0ffee0123456789abcdef0123456789abcdef01"
BRANCH = "beef00112233445566778899aabbccddeeff0011"


@dataclass
class Hub:
    """Datasets by their names: revision, path, content."""

    files: Mapping[str, Mapping[str, Mapping[str, bytes]]]
    private: Mapping[str, str] = field(default_factory=dict)
    """The token of those that need one."""
    gated: frozenset[str] = frozenset()
    status: int | None = None
    """What every request is answered with, where it is set."""
    commits: dict[str, str] = field(default_factory=lambda: {"main": COMMIT, "v2": BRANCH})
    requests: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def downloads(self) -> list[str]:
        """The files that were sent whole."""
        return [each for each in self.requests if each.startswith("GET /datasets/")]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a hub as long as the block lasts."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask_here(hub: Hub, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Let `huggingface_hub` ask this hub, with an empty cache."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    place = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub = self.hub
        hub.requests.append(f"{self.command} {unquote(self.path)}")
        parts = unquote(self.path).partition("?")[0].strip("/").split("/")
        is_listing = parts[0] == "api"
        owner_name = "/".join(parts[2:4] if is_listing else parts[1:3])
        rest = parts[5:] if is_listing else parts[4:]
        if hub.status is not None:
            return self._send(hub.status)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        needed = hub.private.get(owner_name)
        if owner_name not in hub.files or (needed is not None and token != needed):
            return self._send(401, code="RepoNotFound")
        if owner_name in hub.gated:
            return self._send(403, code="GatedRepo")
        revision = "/".join(rest) if is_listing else rest[0]
        names = {commit: name for name, commit in hub.commits.items()}
        revision = names.get(revision, revision)
        files = hub.files[owner_name].get(revision)
        if files is None:
            return self._send(404, code="RevisionNotFound")
        commit = hub.commits[revision]
        if is_listing:
            siblings = [{"rfilename": name} for name in files]
            about = {"id": owner_name, "sha": commit, "siblings": siblings, "tags": []}
            return self._send(200, json.dumps(about).encode(), kind="application/json")
        content = files.get("/".join(rest[1:]))
        if content is None:
            return self._send(404, code="EntryNotFound")
        return self._send(200, content, commit=commit)

    def _send(
        self,
        status: int,
        content: bytes = b"",
        *,
        code: str = "",
        commit: str = "",
        kind: str = "application/octet-stream",
    ) -> None:
        headers = {"X-Error-Code": code, "X-Repo-Commit": commit, "Content-Type": kind}
        if commit:
            headers["ETag"] = f'"{hashlib.sha1(content).hexdigest()}"'
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
