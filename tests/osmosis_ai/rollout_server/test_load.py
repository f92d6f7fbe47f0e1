"""A thousand inits at once over real HTTP, the server in a process of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn

from osmosis_ai.rollout_server.http.uvicorn import Server, configure, listen
from tests.osmosis_ai.rollout_server.test_shutdown import process
from tests.osmosis_ai.rollout_server.trainer import Reply, Served, Trainer, init_body

ROLLOUTS = 1000
PLACES = 64
WATCH = """
import http.client, json, sys, threading, time
connection, seconds, done = http.client.HTTPConnection(sys.argv[1]), [], threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set())).start()
while not done.is_set():
    started = time.perf_counter()
    connection.request("GET", "/health")
    reply = connection.getresponse()
    assert reply.status == 200 and json.loads(reply.read())["status"] == "healthy"
    seconds.append(time.perf_counter() - started)
    time.sleep(0.01)
print(json.dumps(seconds))
"""
"""In a process of its own: the test's is busy being a thousand clients and the trainer."""


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


async def flood(served: Served, trainer: Trainer) -> Counter[int]:
    """Send inits until each was taken; how often there was which status."""
    url, statuses = f"http://127.0.0.1:{served.port}/v1/rollout/init", Counter[int]()

    async def init(session: aiohttp.ClientSession, name: str) -> None:
        while True:
            async with session.post(url, json=init_body(name, trainer)) as reply:
                statuses[reply.status] += 1
                if reply.status == 202:
                    return
                assert reply.status == 429, await reply.text()
                wait_s = int(reply.headers["Retry-After"])
            await asyncio.sleep(wait_s)

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(init(session, f"r{number}") for number in range(ROLLOUTS)))
    return statuses


@contextmanager
def watched(served: Served) -> Iterator[list[float]]:
    """How long /health took, in seconds; filled in the end."""
    taken: list[float] = []
    command = [sys.executable, "-c", WATCH, f"127.0.0.1:{served.port}"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watcher:
        yield taken
        printed, _ = watcher.communicate()
        assert watcher.returncode == 0
        taken += json.loads(printed)


@pytest.mark.slow
def test_a_thousand_inits_at_once_are_each_completed_once(trainer: Trainer, tmp_path: Path):
    most = current = 0

    async def answer(body: dict[str, object]) -> dict[str, object]:
        nonlocal most, current
        current += 1
        most = max(most, current)
        await asyncio.sleep(0.02)
        current -= 1
        return {"choices": [{"message": {"content": "x" * 1000}}]}

    trainer.answer = answer
    away = iter(range(150))
    trainer.take = lambda body, count: Reply(503 if next(away, None) is not None else 200)
    with process(tmp_path, "--max-concurrent", str(PLACES), agent="asking") as found:
        served, pid = found.served, found.running.pid
        served.health()
        before_mb = memory_mb(pid)
        with watched(served) as health_s:
            statuses = asyncio.run(flood(served, trainer))
            trainer.wait_for(*(f"r{number}" for number in range(ROLLOUTS)))
        assert served.health()["completed_rollouts"] == ROLLOUTS
        after_mb = memory_mb(pid)
    assert statuses[202] == ROLLOUTS
    assert set(statuses) <= {202, 429}
    assert all(len(results) == 1 for results in trainer.results.values())
    assert len(trainer.calls) == ROLLOUTS
    assert most <= PLACES
    assert after_mb - before_mb < 100
    median_ms, worst_ms = statistics.median(health_s) * 1000, max(health_s) * 1000
    print(f"/health: median {median_ms:.1f} ms, worst {worst_ms:.1f} ms of {len(health_s)}")
    print(f"429: {statuses[429]}; memory: +{after_mb - before_mb:.0f} MB")


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application without a life cycle."""


@pytest.mark.parametrize("kind", [uvicorn.Server, Server])
def test_clients_that_come_at_once_are_kept_until_the_server_has_time(kind: type[uvicorn.Server]):
    async def busy(bound: socket.socket) -> None:
        server = kind(configure(_nothing))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[bound])
        with ExitStack() as clients:
            for _ in range(200):  # none is accepted meanwhile
                clients.enter_context(socket.create_connection(bound.getsockname(), timeout=30))
        await server.shutdown(sockets=[bound])

    with listen("127.0.0.1", 0) as bound:
        asyncio.run(busy(bound))
