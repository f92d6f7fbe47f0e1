from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from tests.osmosis_ai.rollout_server.agents import Behaving
from tests.osmosis_ai.rollout_server.trainer import KEY, Reply, Serve, Trainer, text_answer


def do(what: str, **more: object) -> dict[str, object]:
    return {"metadata": {"do": what, **more}}


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("leave", "the agent called sys.exit(3)"),
        ("cancel_itself", "the agent ended in CancelledError"),
        ("not_json", "not JSON"),
        ("nan", "finite"),
        ("nothing", "returned None"),
        ("leave_in_task", "exit"),
        ("hang", "took more than 1 s"),
        ("no tools", "the tool server is away"),
        ("odd tools", "tool 0"),
    ],
)
def test_whatever_the_agent_does_the_trainer_gets_one_error(
    serve: Serve, trainer: Trainer, what: str, sentence: str
):
    served = serve(max_concurrent=1, rollout_timeout_s=1.0 if what == "hang" else 60.0)
    assert served.init("r", trainer, **do(what)).status == 202
    found = trainer.result("r")
    assert found["status"] == "ERROR"
    assert sentence in found["error_message"]
    assert served.init("next", trainer).status == 202
    assert trainer.result("next")["status"] == "COMPLETED"
    assert served.health()["active_rollouts"] == 0


def test_an_error_message_holds_no_key(
    serve: Serve,
    trainer: Trainer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    caplog.set_level(logging.DEBUG, logger="osmosis")
    served = serve()
    secret, of_a_tool = "the-trainers-own-key-99", "the-key-of-a-tool-77"
    monkeypatch.setenv("SEARCH_API_KEY", of_a_tool)
    for name, key in (("a", KEY), ("b", secret), ("tool", of_a_tool)):
        served.init(name, trainer, api_key=secret, **do("raise_key", key=key))
        assert trainer.result(name)["error_message"] == "ValueError: refused: ***"
    trainer.answer = lambda body: Reply(400, {"error": f"your key {secret} is wrong"})
    served.init("c", trainer, api_key=secret)
    assert "your key *** is wrong" in trainer.result("c")["error_message"]
    served.ask("GET", f"/health?key={KEY}")
    assert "metadata['key']}\")\nValueError: refused: ***" in caplog.text
    assert not [key for key in (KEY, secret, of_a_tool) if key in caplog.text]


@pytest.mark.slow
def test_an_agent_that_swallows_its_cancellation_is_left_behind(serve: Serve, trainer: Trainer):
    agent = Behaving()
    served = serve(agent, rollout_timeout_s=1.0, cancel_grace_s=0.1, max_concurrent=1)
    served.init("r", trainer, **do("swallow"))
    result = trainer.result("r")
    assert "took more than" in result["error_message"]
    assert agent.events == ["cancelled"]
    assert result["metrics"]["total_latency_ms"] > 0
    served.init("next", trainer)
    assert trainer.result("next")["status"] == "COMPLETED"
    assert len(trainer.results["r"]) == 1


def test_an_agent_that_blocks_its_thread_blocks_nobody_else(
    serve: Serve, trainer: Trainer, caplog: pytest.LogCaptureFixture
):
    agent = Behaving()
    served = serve(agent, rollout_timeout_s=60.0)
    served.init("blocking", trainer, **do("hold"))
    assert agent.holding.wait(60)
    for number in range(5):  # its thread is held all the time
        assert served.init(f"r{number}", trainer).status == 202
        assert trainer.result(f"r{number}")["status"] == "COMPLETED"
        assert served.health()["status"] == "healthy"
    assert "blocks its event loop" in caplog.text
    assert "self.released.wait(" in caplog.text
    agent.released.set()
    assert trainer.result("blocking")["status"] == "COMPLETED"


def test_an_agent_that_blocks_its_thread_ends_at_its_deadline(serve: Serve, trainer: Trainer):
    agent = Behaving()
    served = serve(agent, rollout_timeout_s=0.2, cancel_grace_s=0.1)
    served.init("blocking", trainer, **do("hold"))
    assert "took more than 0.2 s" in trainer.result("blocking")["error_message"]
    agent.released.set()


@pytest.mark.slow
def test_blocking_rollouts_that_start_at_once_run_side_by_side(serve: Serve, trainer: Trainer):
    names = [f"r{number}" for number in range(20)]
    served = serve(Behaving(together=len(names)), rollout_timeout_s=60.0)
    for name in names:
        served.init(name, trainer, **do("meet"))  # blocks until all of them do
    trainer.wait_for(*names)
    assert {trainer.results[name][0]["status"] for name in names} == {"COMPLETED"}


def test_places_are_taken_in_order_and_beyond_the_queue_there_is_429(
    serve: Serve, trainer: Trainer
):
    answering = threading.Event()

    async def answer(body: dict[str, Any]) -> dict[str, Any]:
        while not answering.is_set():
            await asyncio.sleep(0.01)
        return text_answer("hello")

    trainer.answer = answer
    served = serve(max_concurrent=2)
    for number in range(4):
        assert served.init(f"r{number}", trainer).status == 202
    assert [served.record(f"r{number}")["state"] for number in range(4)] == [
        "running",
        "running",
        "queued",
        "queued",
    ]
    refused = served.init("r4", trainer)
    assert (refused.status, refused.json()["code"]) == (429, "busy")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert served.init("r3", trainer).status == 202  # known: no new place
    answering.set()
    trainer.wait_for("r0", "r1", "r2", "r3")
    assert served.init("r4", trainer).status == 202
    trainer.result("r4")
