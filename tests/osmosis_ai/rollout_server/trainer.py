"""A trainer for tests: hosts the model over real HTTP, and takes results.

It answers each model call with `answer(body)`, counts what arrives, and can be away for a while.
`Served` runs an application under the project's own uvicorn set-up in a thread of the test.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn

from osmosis_ai.rollout_server.http.uvicorn import Server, configure, listen

KEY = "a-key-for-the-tests-1234"
PATIENCE_S = 60.0


def text_answer(text: str) -> dict[str, Any]:
    """A completion with plain text."""
    return {
        "choices": [
            {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


class Reply:
    """What the trainer answers: a status, a body and headers."""

    def __init__(self, status: int = 200, body: Any = None, **headers: str) -> None:
        self.status = status
        self.body = json.dumps({} if body is None else body).encode()
        self.headers = [f"{name}: {value}" for name, value in headers.items()]


class Trainer:
    """Listens on loopback while it is entered; `stop` and `start` let it be away."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.answer = answer or (lambda body: text_answer("hello"))
        self.take: Callable[[dict[str, Any], int], Reply] = lambda body, count: Reply()
        """What a callback is answered; `count` says how often this rollout's has come."""
        self.calls: list[dict[str, Any]] = []
        self.headers: list[tuple[str, dict[str, str]]] = []
        self.results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        """Callbacks that were taken, by rollout."""
        self.tried: Counter[str] = Counter()
        self.paths: list[str] = []
        self._arrived = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Trainer:
        self.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), daemon=True)
        self._thread.start()
        assert listening.wait(PATIENCE_S)

    def stop(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._thread = None

    def _run(self, listening: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        starting = asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=2048)
        server = loop.run_until_complete(starting)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        loop.run_forever()
        # asyncio loses a client that it is accepting while its server closes: let those in first.
        for listener in server.sockets:
            loop.remove_reader(listener.fileno())
        for _ in range(5):
            loop.run_until_complete(asyncio.sleep(0))
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.005))
        loop.close()

    def wait_for(self, *rollout_ids: str) -> None:
        """Wait until these rollouts' results are here."""
        with self._arrived:
            done = self._arrived.wait_for(
                lambda: all(self.results.get(one) for one in rollout_ids), PATIENCE_S
            )
        missing = [one for one in rollout_ids if not self.results.get(one)]
        assert done, f"{len(missing)} results never came: {missing[:5]}"

    def result(self, rollout_id: str) -> dict[str, Any]:
        """The one result of a rollout."""
        self.wait_for(rollout_id)
        [found] = self.results[rollout_id]
        return found

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        path = first.split()[1]
        self.paths.append(path)
        self.headers.append((path, headers))
        reply = await self._reply(path, json.loads(body))
        head = [f"HTTP/1.1 {reply.status} .", f"content-length: {len(reply.body)}", *reply.headers]
        without_body = reply.status == 204
        if without_body:
            head.pop(1)
        writer.write("\r\n".join([*head, "", ""]).encode() + (b"" if without_body else reply.body))
        await writer.drain()
        return True

    async def _reply(self, path: str, body: dict[str, Any]) -> Reply:
        if path.endswith("/v1/rollout/completed"):
            return self._taken(body)
        if not path.endswith("/v1/chat/completions"):
            return Reply(404)
        self.calls.append(body)
        found = self.answer(body)
        if asyncio.iscoroutine(found):
            found = await found
        return found if isinstance(found, Reply) else Reply(200, found)

    def _taken(self, body: dict[str, Any]) -> Reply:
        name = body["rollout_id"]
        self.tried[name] += 1
        reply = self.take(body, self.tried[name])
        if 200 <= reply.status < 300:
            with self._arrived:
                self.results[name].append(body)
                self._arrived.notify_all()
        return reply


class _Server(Server):
    """Ends by an event, instead of looking every tenth of a second."""

    async def main_loop(self) -> None:
        self.loop, self.ending = asyncio.get_running_loop(), asyncio.Event()
        await self.on_tick(0)
        self.up.set()
        await self.ending.wait()

    up: threading.Event


class _Running:
    """An application under uvicorn, in a thread."""

    def __init__(self, config: uvicorn.Config, bound: socket.socket) -> None:
        self.server = _Server(config)
        self.server.up = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(bound,), daemon=True)
        self.thread.start()
        assert self.server.up.wait(PATIENCE_S)

    def _run(self, bound: socket.socket) -> None:
        with bound:
            asyncio.run(self.server._serve(sockets=[bound]))

    def stop(self) -> None:
        self.server.loop.call_soon_threadsafe(self.server.ending.set)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


class Answer:
    """A reply as the client sees it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running server."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port = port
        self.key = key

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Answer:
        """One request over its own connection; the key is sent unless headers say otherwise."""
        sent = {"Authorization": f"Bearer {self.key}"} if self.key and headers is None else {}
        sent.update(headers or {})
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request(method, path, data, sent)
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def init(self, rollout_id: str, trainer: Trainer | str, **fields: Any) -> Answer:
        """Ask for a rollout."""
        return self.ask("POST", "/v1/rollout/init", init_body(rollout_id, trainer, **fields))

    def health(self) -> dict[str, Any]:
        return self.ask("GET", "/health", headers={}).json()

    def record(self, rollout_id: str) -> dict[str, Any]:
        return self.ask("GET", f"/rollout/{rollout_id}").json()

    def wait_for_delivery(self, rollout_id: str, wanted: str) -> dict[str, Any]:
        """The rollout's record once its result's delivery has come to `wanted`."""
        return self._wait(rollout_id, lambda reply: reply.json().get("delivery") == wanted).json()

    def wait_until_forgotten(self, rollout_id: str) -> None:
        """Wait until the server has no record of the rollout any more."""
        self._wait(rollout_id, lambda reply: reply.status == 404)

    def _wait(self, rollout_id: str, done: Callable[[Answer], bool]) -> Answer:
        until = time.monotonic() + PATIENCE_S
        while not done(reply := self.ask("GET", f"/rollout/{rollout_id}")):
            assert time.monotonic() < until, reply.body
            time.sleep(0.002)
        return reply


Serve = Callable[..., Served]
"""What serves an agent or a workflow for the test."""


def init_body(rollout_id: str, trainer: Trainer | str, **fields: Any) -> dict[str, Any]:
    """The body of an init."""
    url = trainer if isinstance(trainer, str) else trainer.url
    messages = [{"role": "user", "content": f"question of {rollout_id}"}]
    return {"rollout_id": rollout_id, "server_url": url, "messages": messages, **fields}


@contextmanager
def served(app: Any, key: str | None = KEY) -> Iterator[Served]:
    """Serve an application as `osmosis serve` does, in a thread."""
    bound = listen("127.0.0.1", 0)
    port = bound.getsockname()[1]
    running = _Running(configure(app), bound)
    try:
        yield Served(port, key)
    finally:
        running.stop()
