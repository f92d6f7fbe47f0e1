from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from osmosis_ai.rollout import create_app
from osmosis_ai.rollout_server.settings import ServerSettings
from tests.osmosis_ai.rollout_server.agents import Asking, Behaving
from tests.osmosis_ai.rollout_server.trainer import KEY, Served, Trainer, init_body, served

AGENTS = Path(__file__).with_name("agents.py")


def behaving(**settings: Any) -> Any:
    """An application that does not wait for long when it ends."""
    limits = ServerSettings(**{"local": True, "drain_s": 0.1, **settings})
    return create_app(Behaving(), settings=limits, api_key=KEY)


@dataclass(frozen=True)
class Process:
    """`osmosis serve` in a process of its own."""

    running: subprocess.Popen[str]
    log: Path
    served: Served


@contextmanager
def process(folder: Path, *words: str, agent: str = "behaving") -> Iterator[Process]:
    """Start a server with the test's agents; it says itself where it is."""
    command = [sys.executable, "-m", "osmosis_cli", "serve", "-m", f"{AGENTS}:{agent}"]
    log = folder / "serve.log"
    with (
        log.open("a") as errors,
        subprocess.Popen(
            [*command, "-p", "0", "--local", "--json", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        ) as running,
    ):
        assert running.stdout is not None
        printed = running.stdout.readline()
        try:
            assert printed, log.read_text()
            port = int(json.loads(printed)["url"].rpartition(":")[2])
            yield Process(running, log, Served(port, None))
        finally:
            running.kill()


@pytest.mark.slow
def test_sigterm_lets_rollouts_end_and_tells_of_the_rest(trainer: Trainer, tmp_path: Path):
    asked, ending = threading.Event(), threading.Event()

    def answer() -> dict[str, object]:
        asked.set()
        assert ending.wait(60)
        return {"choices": [{"message": {"content": "in time"}}]}

    trainer.answer = lambda body: asyncio.to_thread(answer)
    with process(tmp_path, "--max-concurrent", "2", "--drain", "5") as found:
        served = found.served
        served.init("ending", trainer)
        served.init("hanging", trainer, metadata={"do": "hang"})
        served.init("waiting", trainer, metadata={"do": "hang"})
        assert asked.wait(60)
        found.running.send_signal(signal.SIGTERM)
        with pytest.raises(OSError):
            while True:
                served.health()
        ending.set()
        assert found.running.wait(60) == 143
    assert trainer.result("ending")["status"] == "COMPLETED"
    for name in ("hanging", "waiting"):
        result = trainer.result(name)
        assert result["status"] == "ERROR", name
        assert "shut down" in result["error_message"], name
    assert set(trainer.tried.values()) == {1}


def test_an_application_that_mounts_this_one_starts_and_stops_it_again_and_again(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
):
    app = behaving()
    mounting = Starlette(routes=[Mount("/agent", app)], lifespan=app.lifespan)
    for name in ("hanging", "hanging again"):
        body = init_body(name, trainer, metadata={"do": "hang"})
        with served(mounting) as running:
            assert running.ask("POST", "/agent/v1/rollout/init", body).status == 202
        assert "shut down" in trainer.result(name)["error_message"]
    assert "started_by_a_request" not in caplog.text


def test_an_application_that_was_asked_before_its_start_starts_anew(trainer: Trainer):
    app = behaving()
    with served(Starlette(routes=[Mount("", app)])) as running:  # without a lifespan
        assert running.init("before", trainer, metadata={"do": "hang"}).status == 202
        left = app._served().service
    with served(app) as running:
        running.init("r", trainer)
        assert trainer.result("r")["status"] == "COMPLETED"
    asyncio.run(left._release())  # its threads


def test_an_application_that_is_not_started_as_it_should_be_warns(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
):
    app = create_app(Asking(), settings=ServerSettings(local=True), api_key=KEY)

    async def stopping(_: object) -> AsyncIterator[None]:
        yield
        await app._served().service.stop()

    mounting = Starlette(routes=[Mount("", app)], lifespan=asynccontextmanager(stopping))
    with served(mounting) as running:
        running.init("r", trainer)
        running.init("s", trainer)
    assert caplog.text.count("run app.lifespan") == 1


def test_a_rollout_that_does_not_heed_the_shutdown_is_reported_all_the_same(trainer: Trainer):
    with served(behaving(max_concurrent=1, cancel_grace_s=0.1, flush_s=5.0)) as running:
        running.init("stubborn", trainer, metadata={"do": "swallow"})
        running.init("waiting", trainer)
    for name in ("stubborn", "waiting"):
        assert "shut down" in trainer.result(name)["error_message"], name


@pytest.mark.slow
def test_sigint_ends_an_idle_server_at_once(tmp_path: Path):
    with process(tmp_path) as found:
        found.served.health()
        found.running.send_signal(signal.SIGINT)
        assert found.running.wait(60) == 130
        assert "Traceback" not in found.log.read_text()


def test_a_server_that_is_ended_by_two_signals_says_nothing_of_a_cancelled_task():
    app = create_app(Asking(), settings=ServerSettings(local=True), api_key=KEY)
    sent: list[str] = []

    async def end_while_it_waits() -> None:
        coming: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        coming.put_nowait({"type": "lifespan.startup"})
        has_started = asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message["type"])
            has_started.set()

        living = asyncio.ensure_future(app({"type": "lifespan"}, coming.get, send))
        await has_started.wait()
        living.cancel()  # as the second signal does
        await living

    asyncio.run(end_while_it_waits())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
