from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import pytest

from osmosis_ai.rollout import RolloutContext, RolloutResult
from osmosis_ai.rollout_server.trainer import client, delivery
from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.trainer import (
    PATIENCE_S,
    Reply,
    Serve,
    Trainer,
)


def test_the_callback_says_all_that_the_contract_lists(serve: Serve, trainer: Trainer):
    served = serve(Asking())
    served.init("r", trainer)
    found = trainer.result("r")
    metrics = found.pop("metrics")
    assert found == {
        "rollout_id": "r",
        "status": "COMPLETED",
        "final_messages": [
            {"role": "user", "content": "question of r"},
            {"role": "assistant", "content": "hello"},
        ],
        "finish_reason": "stop",
        "error_message": None,
        "reward": 0.5,
        "extra_fields": {},
    }
    counts = ("num_llm_calls", "prompt_tokens", "response_tokens")
    assert [metrics[name] for name in counts] == [1, 3, 2]
    [(path, headers)] = [one for one in trainer.headers if one[0].endswith("completed")]
    assert (path, headers["idempotency-key"]) == ("/v1/rollout/completed", "r")
    trainer.answer = lambda body: {"choices": [{"message": {"content": "hello"}}]}
    served.init("s", trainer)
    metrics = trainer.result("s")["metrics"]  # tokens that the trainer does not report are left out
    assert metrics["num_llm_calls"] == 1
    assert not {"prompt_tokens", "response_tokens", "max_context_tokens"} & metrics.keys()


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_2xx_is_success(serve: Serve, trainer: Trainer, status: int):
    trainer.take = lambda body, count: Reply(status)
    served = serve(Asking())
    served.init("r", trainer)
    trainer.wait_for("r")
    served.wait_for_delivery("r", "delivered")
    assert trainer.tried["r"] == 1


def test_5xx_is_retried_beyond_one_round_until_it_is_taken(serve: Serve, trainer: Trainer):
    trainer.take = lambda body, count: Reply(503 if count < 8 else 200)
    served = serve(Asking())
    served.init("r", trainer)
    assert trainer.result("r")["status"] == "COMPLETED"
    assert trainer.tried["r"] == 8
    served.wait_for_delivery("r", "delivered")


@pytest.mark.parametrize("status", [400, 404, 409, 422, 301])
def test_4xx_and_redirects_are_final_and_the_result_is_kept(
    serve: Serve, trainer: Trainer, status: int
):
    trainer.take = lambda body, count: Reply(status)
    served = serve(Asking())
    served.init("r", trainer)
    record = served.wait_for_delivery("r", "refused")
    assert record["result"]["final_messages"][-1]["content"] == "hello"
    assert (record["state"], record["status"]) == ("ended", "COMPLETED")
    assert trainer.tried["r"] == 1


def test_results_reach_a_trainer_that_was_away_once_each(serve: Serve, trainer: Trainer):
    served = serve(Asking())
    names = [f"r{number}" for number in range(20)]
    trainer.take = lambda body, count: Reply(500)
    for name in names:
        assert served.init(name, trainer).status == 202
    for name in names:
        served.wait_for_delivery(name, "pending")
    trainer.stop()
    assert served.health()["undelivered_results"] == len(names)
    trainer.take = lambda body, count: Reply()
    trainer.start()
    trainer.wait_for(*names)
    assert all(len(trainer.results[name]) == 1 for name in names)
    for name in names:
        served.wait_for_delivery(name, "delivered")
    assert served.health()["undelivered_results"] == 0


def test_a_trainer_that_cannot_be_trusted_yet_is_tried_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/missing")
    failed: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(caplog.handler, "emit", lambda record: failed.put(record.getMessage()))
    served = serve(Asking(), flush_s=0.1)
    served.init("r", "https://127.0.0.1:9")
    for _ in range(2):
        while not (reason := failed.get(timeout=PATIENCE_S)).startswith("callback_failed"):
            pass
        assert "SSL_CERT_FILE names '/nowhere/missing'" in reason
    assert served.record("r")["delivery"] == "pending"


def test_no_result_is_lost_over_an_error_that_nobody_foresaw(
    serve: Serve, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
):
    ask, failures = delivery.TrainerChannel.ask, iter([RuntimeError("unforeseen")])

    async def failing(self: Any, path: str, *rest: Any, **options: Any) -> Any:
        if path == client.COMPLETED_PATH and (error := next(failures, None)):
            raise error
        return await ask(self, path, *rest, **options)

    monkeypatch.setattr(delivery.TrainerChannel, "ask", failing)
    served = serve(Asking())
    served.init("r", trainer)
    assert trainer.result("r")["status"] == "COMPLETED"
    assert next(failures, None) is None


@pytest.mark.slow
def test_a_result_that_nobody_takes_expires(
    serve: Serve, trainer: Trainer, caplog: pytest.LogCaptureFixture
):
    trainer.take = lambda body, count: Reply(500)
    served = serve(Asking(), record_ttl_seconds=0.5)
    served.init("r", trainer)
    served.wait_until_forgotten("r")
    assert any(message.startswith("callback_expired ") for message in caplog.messages)


def test_undelivered_results_hold_up_new_rollouts_and_nothing_else(serve: Serve, trainer: Trainer):
    trainer.answer = lambda body: {"choices": [{"message": {"content": "x" * 20_000}}]}
    trainer.take = lambda body, count: Reply(500)
    served = serve(Asking(), max_held_bytes=30_000)
    for number in range(2):
        assert served.init(f"r{number}", trainer).status == 202
        served.wait_for_delivery(f"r{number}", "pending")
    refused = served.init("r2", trainer)
    assert (refused.status, refused.json()["code"]) == (429, "backlog")
    assert int(refused.headers["retry-after"]) > 0
    trainer.take = lambda body, count: Reply()
    trainer.wait_for("r0", "r1")
    for number in range(2):
        served.wait_for_delivery(f"r{number}", "delivered")
    assert served.init("r2", trainer).status == 202
    trainer.wait_for("r2")
    served.wait_for_delivery("r2", "delivered")
    # The oldest delivered result made room; that it was delivered is still known.
    assert served.record("r0")["result"] is None


def test_the_metrics_of_a_rollout_that_failed_or_was_refused_are_those_until_then(
    serve: Serve, trainer: Trainer
):
    class Failing(Asking):
        async def run(self, ctx: RolloutContext) -> RolloutResult:
            await ctx.chat(list(ctx.request.messages))
            ctx.record_tool_call(latency_ms=7.0)
            raise LookupError("no such drawer")

    serve(Failing()).init("r", trainer)
    result = trainer.result("r")
    assert result["error_message"] == "LookupError: no such drawer"
    metrics = result["metrics"]
    assert (metrics["num_llm_calls"], metrics["num_tool_calls"]) == (1, 1)
    assert metrics["tool_latency_ms"] == 7.0
    assert metrics["total_latency_ms"] >= metrics["llm_latency_ms"] > 0.0
    trainer.answer = lambda body: Reply(400)
    serve(Asking()).init("s", trainer)
    metrics = trainer.result("s")["metrics"]
    assert metrics["total_latency_ms"] >= metrics["llm_latency_ms"] > 0.0
