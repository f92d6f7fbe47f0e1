"""A loopback endpoint that answers like an OpenAI-compatible one, or misbehaves on demand.

The model's name picks the behaviour: `echo` repeats the last user message, `fault-…` does what
`endpoint_faults.py` lists under that name (`-once` or `-twice` behind it: so many times per row,
then a good answer), anything else gives the answers that the test handed in.

    with Endpoint({"What is 6 x 7?": "42"}) as endpoint:
        ...  # endpoint.base_url, endpoint.requests, endpoint.by_row["What is 6 x 7?"], ...

It is a real server over TCP, in a thread of its own; `EndpointProcess` is the same in a process of
its own, for benchmarks. Light: over 10,000 requests a second and core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal
from urllib.request import ProxyHandler, build_opener

CERTIFICATES = Path(__file__).parent / "certificates"
SELF_SIGNED = CERTIFICATES / "self_signed.pem"
"""For localhost, 127.0.0.1 and model.example; also what a client must trust."""
EXPIRED = CERTIFICATES / "expired.pem"

GRACE_S = 0.05
"""A request so soon behind a Retry-After was on its way already."""

Ending = Literal["reset", "close", "hang"]
Step = bytes | float | Ending  # bytes to send, seconds to wait, or how it ends


@dataclass(slots=True)
class Ask:
    """One request as it came in."""

    endpoint: Endpoint
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    at: float
    """`time.monotonic()` of its arrival."""
    body: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    row: str = ""
    """The last user message: what tells rows apart."""
    attempt: int = 1
    """Counted per model and row."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation."""
        found = self.body.get("messages")
        return found if isinstance(found, list) else []

    def hold(self, seconds: float) -> None:
        """From now on, requests for this model within `seconds` are counted as early."""
        until = time.monotonic() + seconds
        self.endpoint.not_before[self.model] = (time.monotonic(), until)


Answers = Callable[[Ask], Any] | Mapping[str, Any] | str | bytes | list[Any] | None


class Endpoint:
    """An endpoint in a thread; its attributes count what came in.

    `answers`: one text or completion for all, a table keyed on the last user message, or a callable
    given the `Ask`. An answer is a text, a message (dict), a completion (dict with `choices`), a
    raw reply (bytes), or steps (list, iterator); without one the last user message is repeated.
    """

    def __init__(
        self,
        answers: Answers = None,
        *,
        latency_s: float = 0.0,
        models: Iterable[str] | None = None,
        api_key: str | None = None,
        tls: Path | None = None,
        keep: int = 10_000,
        port: int = 0,
    ) -> None:
        self.answers = answers
        self.latency_s = latency_s
        self.full_at = 0
        """Answer nothing before so many requests are in flight at once."""
        self.models = None if models is None else set(models)
        """Names that are known; None: any."""
        self.api_key = api_key
        """When set, another key gets a 401."""
        self.tls = tls
        self.keep = keep
        self.routes: Mapping[str, Any] = {}
        """Other paths below the base URL: the JSON that each answers with, or what makes it."""
        self.port = port
        self.requests = 0
        self.by_row: Counter[str] = Counter()
        self.by_model: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.early = 0
        """Requests before the Retry-After that an earlier reply had named."""
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        self.open_connections = 0
        self.hung_up = 0
        """Connections that the client closed while a reply was due."""
        self.last_headers: dict[str, str] = {}
        self.seen: list[Ask] = []
        """The first `keep` requests."""
        self.not_before: dict[str, tuple[float, float]] = {}
        self.attempts: Counter[tuple[str, str]] = Counter()
        self._ready = threading.Event()
        self._changed = threading.Condition()

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1"

    @property
    def netloc(self) -> str:
        """`127.0.0.1:PORT`, as error messages name it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Endpoint:
        """Listen; returns once requests are accepted."""
        self._thread = threading.Thread(target=self._serve, name="endpoint", daemon=True)
        self._thread.start()
        if not self._ready.wait(60):
            raise RuntimeError("the endpoint did not start")
        return self

    def close(self) -> None:
        """Stop listening and drop every connection."""
        with suppress(RuntimeError):  # it has gone away before
            self.go_away()
        self._thread.join(60)

    def go_away(self) -> None:
        """The same without waiting for it, from any thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    def __enter__(self) -> Endpoint:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait_until(self, met: Callable[[Endpoint], bool], timeout_s: float = 60.0) -> bool:
        """Wait, from the test's thread, until `met(endpoint)` holds."""
        with self._changed:
            return self._changed.wait_for(lambda: met(self), timeout_s)

    def tally(self) -> dict[str, Any]:
        """The counts, as JSON."""
        return {
            "requests": self.requests,
            "early": self.early,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "connections": self.connections,
            "open_connections": self.open_connections,
            "hung_up": self.hung_up,
            "by_model": dict(self.by_model),
            "by_row": dict(self.by_row),
        }

    def _serve(self) -> None:
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Serve in the running loop until closed."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        open_ones: set[_Connection] = set()
        context = None
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
        server = await self._loop.create_server(
            lambda: _Connection(self, open_ones),
            "127.0.0.1",
            self.port,
            ssl=context,
            backlog=4096,
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # asyncio loses a client that it is accepting while its server closes: let those in first.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        for _ in range(5):
            await asyncio.sleep(0)
        server.close()
        for connection in tuple(open_ones):
            connection.transport.abort()
        while open_ones:
            await asyncio.sleep(0)

    def notify(self) -> None:
        """Wake whoever waits in `wait_until`."""
        with self._changed:
            self._changed.notify_all()

    def steps(self, ask: Ask) -> Iterable[Step]:
        """What to send back for `ask`."""
        if ask.method == "GET":
            return self._get(ask)
        path = ask.path.partition("?")[0]
        for end, document in self.routes.items():
            if path.endswith(end):
                found = document(ask) if callable(document) else document
                return found if isinstance(found, list) else [reply(200, found)]
        if not path.endswith("/chat/completions"):
            return [reply(404, {"detail": "Not Found"})]
        if self.api_key is not None and ask.headers.get("authorization") != (
            f"Bearer {self.api_key}"
        ):
            return [error_reply(401, "Incorrect API key provided", code="invalid_api_key")]
        if self.models is not None and ask.model not in self.models:
            message = f"The model `{ask.model}` does not exist."
            return [error_reply(404, message, code="model_not_found")]
        if ask.model.startswith("fault-"):
            from .endpoint_faults import misbehave

            steps = misbehave(ask)
            if steps is not None:
                return steps
        good = self.good_answer(ask)
        if self.full_at:
            return self._once_full(good)
        return (self.latency_s, *good) if self.latency_s else good

    def _once_full(self, good: Iterable[Step]) -> Iterator[Step]:
        until = time.monotonic() + 60
        while self.max_in_flight < self.full_at and time.monotonic() < until:
            yield 0.005
        yield self.latency_s
        yield from good

    def good_answer(self, ask: Ask) -> Iterable[Step]:
        """The answer that the test asked for."""
        answers = self.answers
        answer: Any = answers
        if ask.model == "echo":
            answer = None
        elif callable(answers):
            answer = answers(ask)
        elif isinstance(answers, Mapping) and "choices" not in answers:
            answer = answers.get(ask.row)
        if isinstance(answer, list | Iterator):
            return answer
        if isinstance(answer, bytes):
            return [answer]
        if isinstance(answer, dict) and "choices" in answer:
            return [reply(200, answer)]
        return [reply(200, completion(ask.row if answer is None else answer, model=ask.model))]

    def _get(self, ask: Ask) -> Iterable[Step]:
        if ask.path.endswith("/models"):
            known = sorted(self.models or {"echo"})
            return [reply(200, {"object": "list", "data": [{"id": name} for name in known]})]
        if ask.path.endswith("/tally"):
            return [reply(200, self.tally())]
        return [reply(200, {"status": "ok"})]


class _Connection(asyncio.Protocol):
    """One connection: requests in, steps out."""

    transport: asyncio.Transport
    _heads: ClassVar[dict[bytes, tuple[str, str, dict[str, str], int]]] = {}

    def __init__(self, endpoint: Endpoint, open_ones: set[_Connection]) -> None:
        self.endpoint = endpoint
        self.open_ones = open_ones
        self.buffer = b""
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.open_ones.add(self)
        self.endpoint.connections += 1
        self.endpoint.open_connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_ones.discard(self)
        self.endpoint.open_connections -= 1
        if self.busy:
            self.endpoint.hung_up += 1
            self._done()
        self.endpoint.notify()

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        if self.buffer[:1] == b"\x16":  # a TLS greeting on a plain port: answered as uvicorn does
            self.transport.write(reply(400, b"Invalid HTTP request received."))
            self.transport.close()
            return
        while not self.busy and self.buffer:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            method, path, headers, length = self._head(self.buffer[:end])
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self._answer(Ask(self.endpoint, method, path, headers, body, time.monotonic()))

    def _head(self, head: bytes) -> tuple[str, str, dict[str, str], int]:
        known = self._heads.get(head)
        if known is None:
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ", 2)
            pairs = (line.split(":", 1) for line in lines)
            headers = {name.strip().lower(): value.strip() for name, value in pairs}
            known = (method, path, headers, int(headers.get("content-length", 0)))
            if len(self._heads) < 1000:
                self._heads[head] = known
        return known

    def _answer(self, ask: Ask) -> None:
        endpoint = self.endpoint
        if ask.method == "POST":
            self._count(ask)
        self.busy = True
        endpoint.in_flight += 1
        endpoint.max_in_flight = max(endpoint.max_in_flight, endpoint.in_flight)
        self._play(iter(endpoint.steps(ask)))
        endpoint.notify()

    def _count(self, ask: Ask) -> None:
        endpoint = self.endpoint
        try:
            ask.body = json.loads(ask.raw)
        except ValueError:
            ask.body = {}
        ask.model = str(ask.body.get("model", ""))
        ask.row = last_user_text(ask.messages)
        endpoint.requests += 1
        endpoint.by_row[ask.row] += 1
        endpoint.by_model[ask.model] += 1
        endpoint.attempts[ask.model, ask.row] += 1
        ask.attempt = endpoint.attempts[ask.model, ask.row]
        endpoint.last_headers = ask.headers
        if len(endpoint.seen) < endpoint.keep:
            endpoint.seen.append(ask)
        held = endpoint.not_before.get(ask.model)
        if held is not None and held[0] + GRACE_S < ask.at < held[1]:
            endpoint.early += 1

    def _play(self, steps: Iterator[Step]) -> None:
        for step in steps:
            if not self.busy:
                return  # the client has hung up
            if isinstance(step, bytes):
                self.transport.write(step)
            elif isinstance(step, float):
                asyncio.get_running_loop().call_later(step, self._play, steps)
                return
            else:
                self._end(step)
                return
        self._done()
        if self.buffer:
            self.data_received(b"")

    def _end(self, ending: Ending) -> None:
        if ending == "hang":
            return
        self._done()
        if ending == "reset":
            linger = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self.transport.abort()
        else:
            self.transport.close()

    def _done(self) -> None:
        if self.busy:
            self.busy = False
            self.endpoint.in_flight -= 1


def last_user_text(messages: list[dict[str, Any]]) -> str:
    """Text of the last user message."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                return "".join(str(part.get("text", "")) for part in content)
            return str(content)
    return ""


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(
    answer: str | dict[str, Any],
    *,
    model: str = "m",
    finish_reason: str | None = "stop",
    usage: Any = USAGE,
) -> dict[str, Any]:
    """A chat completion whose message is `answer`, or has it as content."""
    message = answer if isinstance(answer, dict) else {"role": "assistant", "content": answer}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


def streamed(said: str) -> bytes:
    """Return an answer of one chunk as it comes from an endpoint that streams."""
    choice = {"index": 0, "delta": {"content": said}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    chunk = {"choices": [choice], "usage": usage}
    text = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        f"Content-Length: {len(text)}\r\n\r\n{text}"
    ).encode()


def tool_call(name: str, arguments: Any, *, call_id: str | None = "call_1") -> dict[str, Any]:
    """An assistant message with one tool call; non-text arguments are sent as they are."""
    call: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    if call_id is not None:
        call["id"] = call_id
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def reply(
    status: int, body: Any = b"", *, headers: Mapping[str, str] | None = None, length: bool = True
) -> bytes:
    """A whole HTTP reply; `body` is bytes as they are, anything else as JSON."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode("ascii")
    lines = [f"HTTP/1.1 {status} Whatever"]
    fields = {"Content-Type": "application/json", **(headers or {})}
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if length:
        lines.append(f"Content-Length: {len(payload)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + payload


def error_reply(
    status: int,
    message: str,
    *,
    code: str | int | None = None,
    kind: str = "error",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """An error as OpenAI writes it."""
    return reply(
        status, {"error": {"message": message, "type": kind, "code": code}}, headers=headers
    )


def failure_reply(message: str) -> bytes:
    """A failure of the endpoint's own, which it asks not to try again."""
    return error_reply(503, message, headers={"x-should-retry": "false"})


class EndpointProcess:
    """The endpoint in a process of its own, for benchmarks: `tally()` asks it for its counts."""

    def __init__(self, *, latency_s: float = 0.0, answer: str = "42") -> None:
        self.command = [
            sys.executable,
            "-m",
            "tests.support.endpoints",
            "--latency-s",
            str(latency_s),
        ]
        self.command += ["--answer", answer]
        self.base_url = ""

    def __enter__(self) -> EndpointProcess:
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            self.command, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            raise RuntimeError("the endpoint did not start")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tally(self) -> dict[str, Any]:
        """The counts so far."""
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"{self.base_url}/tally", timeout=60) as answer:
            counts: dict[str, Any] = json.load(answer)
        return counts


@contextmanager
def refusing_address() -> Iterator[str]:
    """A host and port where connections are refused, and that no other server can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and never listening
        yield f"127.0.0.1:{held.getsockname()[1]}"


def main() -> None:
    """Serve until standard input ends: `python -m tests.support.endpoints` prints its base URL."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--answer", default="42")
    given = parser.parse_args()
    with Endpoint(given.answer, latency_s=given.latency_s, port=given.port, keep=0) as endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
