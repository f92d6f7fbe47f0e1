"""A loopback endpoint for measurements: one constant answer, after a constant latency.

    python benchmarks/endpoint.py --latency-s 0.1

Prints its base URL and serves until standard input ends. One thread over a selector, so that it
takes little of the machine that it shares with what is measured: the latency is the same for all
requests, so the order in which they came is the order in which they are answered. Answers
`GET /v1/tally` with its counts and `GET /v1/reset` with the same, and starts to count anew.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import ProxyHandler, build_opener

ANSWER = "42"
BACKLOG = 4096
SLACK_S = 0.0005
"""A reply that is due so soon goes now: a timer of the kernel's is no finer."""


class Counts:
    """What came in since the last reset."""

    def __init__(self) -> None:
        self.requests = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        self.first_at: float | None = None
        """Wall clock of the first request."""
        self.last_at: float | None = None
        """Wall clock of the last answer."""
        self.cpu_s = time.process_time()

    def as_json(self) -> dict[str, Any]:
        """The counts; `cpu_s` is the endpoint's own since the last reset."""
        return {**vars(self), "cpu_s": time.process_time() - self.cpu_s}


class Connection:
    """One client's connection."""

    __slots__ = ("buffer", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""


class Server:
    """Reads requests and answers each when it is due."""

    def __init__(self, *, latency_s: float, answer: str = ANSWER) -> None:
        self._latency_s = latency_s
        self._reply = reply(completion(answer))
        self._counts = Counts()
        self._due: deque[tuple[float, Connection]] = deque()
        self._selector = selectors.DefaultSelector()
        self._lengths: dict[bytes, tuple[bool, int]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            wait_s = self._due[0][0] - time.monotonic() if self._due else None
            for key, _ in self._selector.select(None if wait_s is None else max(wait_s, 0)):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._answer_due()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._counts.connections += 1
            self._selector.register(sock, selectors.EVENT_READ, Connection(sock))

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection.sock)
            connection.sock.close()
            return
        connection.buffer += data
        end = connection.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = connection.buffer[:end]
        is_post, length = self._framing(head)
        if len(connection.buffer) < end + 4 + length:
            return
        connection.buffer = connection.buffer[end + 4 + length :]
        if is_post:
            self._take(connection)
        else:
            self._tell(connection, head)

    def _framing(self, head: bytes) -> tuple[bool, int]:
        """Whether it is a POST, and how long its body is; clients repeat their heads."""
        known = self._lengths.get(head)
        if known is None:
            lines = head.lower().split(b"\r\n")
            lengths = [line[15:] for line in lines if line.startswith(b"content-length:")]
            known = head.startswith(b"POST"), int(lengths[0]) if lengths else 0
            if len(self._lengths) < 4096:
                self._lengths[head] = known
        return known

    def _take(self, connection: Connection) -> None:
        counts = self._counts
        if counts.first_at is None:
            counts.first_at = time.time()
        counts.requests += 1
        if not self._latency_s:
            counts.max_in_flight = max(counts.max_in_flight, 1)
            self._answer(connection)
            return
        counts.in_flight += 1
        if counts.in_flight > counts.max_in_flight:
            counts.max_in_flight = counts.in_flight
        self._due.append((time.monotonic() + self._latency_s, connection))

    def _answer_due(self) -> None:
        now = time.monotonic() + SLACK_S
        while self._due and self._due[0][0] <= now:
            self._counts.in_flight -= 1
            self._answer(self._due.popleft()[1])

    def _answer(self, connection: Connection) -> None:
        self._send(connection, self._reply)
        self._counts.last_at = time.time()

    def _tell(self, connection: Connection, head: bytes) -> None:
        counts = self._counts.as_json()
        if b"/reset" in head[:100]:
            self._counts = Counts()
        self._send(connection, reply(counts))

    @staticmethod
    def _send(connection: Connection, data: bytes) -> None:
        try:
            connection.sock.sendall(data)
        except OSError:
            return  # the client has hung up; its connection is dropped when it is read


class EndpointProcess:
    """The endpoint in a process of its own."""

    def __init__(self, *, latency_s: float) -> None:
        self.latency_s = latency_s
        self.base_url = ""

    def __enter__(self) -> EndpointProcess:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, "--latency-s", str(self.latency_s)],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            raise RuntimeError("the endpoint did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def reset(self) -> dict[str, Any]:
        """The counts since the last reset, which this is the next of."""
        with build_opener(ProxyHandler({})).open(f"{self.base_url}/reset", timeout=10) as answer:
            counts: dict[str, Any] = json.load(answer)
        return counts


def completion(answer: str) -> dict[str, Any]:
    """A chat completion as OpenAI-compatible endpoints write it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def reply(body: dict[str, Any]) -> bytes:
    """A whole HTTP reply."""
    payload = json.dumps(body).encode("ascii")
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(payload),
        payload,
    )


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog=Path(__file__).name)
    parser.add_argument("--latency-s", type=float, default=0.0)
    server = Server(latency_s=parser.parse_args().latency_s)
    print(server.base_url, flush=True)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    server.serve()


if __name__ == "__main__":
    main()
