"""The RolloutServer against a bare starlette app: requests a second, CPU a request, CPU a rollout.

    python benchmarks/rollout_server.py [--rollouts 2000] [--connections 64]

Servers and trainer run in processes of their own, one after the other, over loopback. `repeated` is
the same init again and again (key, body, JSON, checks, identity; no rollout); `rollouts` is as many
inits as rollouts, each with one model call and one callback to a trainer that answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
import uvicorn

from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutResult, create_app
from osmosis_ai.rollout_server.http.uvicorn import Server, configure, listen
from osmosis_ai.rollout_server.settings import ServerSettings

KEY = "a-key-for-the-benchmark"


class Asking(RolloutAgentLoop):
    """One model call."""

    name = "asking"

    def get_tools(self, request: Any) -> list[Any]:
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        messages = list(ctx.request.messages)
        answer = await ctx.chat(messages)
        return ctx.complete([*messages, answer.message])


def bare() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def init(request: Request) -> JSONResponse:
        body = await request.json()
        return JSONResponse({"rollout_id": body["rollout_id"], "tools": []}, status_code=202)

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    routes = [Route("/v1/rollout/init", init, methods=["POST"]), Route("/health", health)]
    return Starlette(routes=routes)


def ours(places: int) -> Any:
    settings = ServerSettings(local=True, max_concurrent=places)
    return create_app(Asking(), settings=settings, api_key=KEY)


def trainer() -> Any:
    answer = json.dumps(
        {
            "choices": [
                {"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
        }
    ).encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


def _serve(make: Callable[[], Any], pipe: Connection) -> None:
    bound = listen("127.0.0.1", 0)
    pipe.send(bound.getsockname()[1])
    app = make()
    config = configure(app) if not hasattr(app, "__code__") else None
    if config is None:
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    server = Server(config, owns_process=True)

    async def run() -> None:
        asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
        await server._serve(sockets=[bound])

    def answer() -> None:
        if pipe.recv() == "stop":
            server.should_exit = True
        else:
            used = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(used.ru_utime + used.ru_stime)

    asyncio.run(run())


class Process:
    """A server in a process of its own."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_serve, args=(make, theirs), daemon=True)
        self.process.start()
        self.url = f"http://127.0.0.1:{self.pipe.recv()}"

    def cpu_s(self) -> float:
        self.pipe.send("cpu")
        return float(self.pipe.recv())

    def stop(self) -> None:
        self.pipe.send("stop")
        self.process.join(20)


@dataclass(frozen=True)
class Measured:
    """What a number of requests took."""

    requests: int
    wall_s: float
    cpu_s: float
    health_ms: list[float]

    def line(self, name: str) -> str:
        ordered = sorted(self.health_ms) or [0.0]
        return (
            f"{name:<22}{self.requests / self.wall_s:>9.0f}/s"
            f"{self.cpu_s / self.requests * 1e6:>9.0f} us CPU"
            f"   /health median {ordered[len(ordered) // 2]:.1f} ms, worst {ordered[-1]:.1f} ms"
        )


async def measure(
    process: Process, bodies: list[dict[str, Any]], connections: int, settled: Callable[..., Any]
) -> Measured:
    health_ms: list[float] = []
    headers = {"Authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work(left: Any) -> None:
            for body in left:
                async with session.post(f"{process.url}/v1/rollout/init", json=body) as reply:
                    assert reply.status == 202, await reply.text()
                    await reply.read()

        async def watch() -> None:
            while True:
                started = time.perf_counter()
                async with session.get(f"{process.url}/health") as reply:
                    await reply.read()
                health_ms.append((time.perf_counter() - started) * 1000)
                await asyncio.sleep(0.02)

        left = iter(bodies)
        watching = asyncio.ensure_future(watch())
        before, started = process.cpu_s(), time.perf_counter()
        await asyncio.gather(*(work(left) for _ in range(connections)))
        await settled(session)
        wall_s, used = time.perf_counter() - started, process.cpu_s() - before
        watching.cancel()
    return Measured(len(bodies), wall_s, used, health_ms)


async def at_once(session: aiohttp.ClientSession) -> None:
    """Nothing to wait for."""


def all_delivered(url: str, rollouts: int) -> Callable[..., Any]:
    async def settled(session: aiohttp.ClientSession) -> None:
        while True:
            async with session.get(f"{url}/health") as reply:
                health = await reply.json()
            if (health["completed_rollouts"], health["undelivered_results"]) == (rollouts, 0):
                return
            await asyncio.sleep(0.02)

    return settled


def bodies(trainer_url: str, count: int, *, same: bool) -> list[dict[str, Any]]:
    messages = [
        {"role": "system", "content": "You are a calculator."},
        {"role": "user", "content": "What is 2 + 2?"},
    ]
    return [
        {"rollout_id": f"r{0 if same else i}", "server_url": trainer_url, "messages": messages}
        for i in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--connections", type=int, default=64)
    asked = parser.parse_args()
    count, connections = asked.rollouts, asked.connections
    host = Process(trainer)
    print(f"{os.cpu_count()} cores, {count} requests over {connections} connections")
    starlette, server = Process(bare), Process(lambda: ours(count))
    repeated, distinct = bodies(host.url, count, same=True), bodies(host.url, count, same=False)
    for process, name in ((starlette, "bare starlette"), (server, "repeated init")):
        asyncio.run(measure(process, repeated[:200], connections, at_once))  # warm
        print(asyncio.run(measure(process, repeated, connections, at_once)).line(name))
    fresh = Process(lambda: ours(count))
    settled = all_delivered(fresh.url, count)
    print(asyncio.run(measure(fresh, distinct, connections, settled)).line("whole rollouts"))
    for process in (starlette, server, fresh, host):
        process.stop()


if __name__ == "__main__":
    main()
