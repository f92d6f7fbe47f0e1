from __future__ import annotations

import asyncio
import json
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from osmosis_ai.rollout import RolloutContext, RolloutResult, create_app
from osmosis_ai.rollout_server import journal
from osmosis_ai.rollout_server.journal import Journal, JournalInUse
from osmosis_ai.rollout_server.rollouts import Rollout
from osmosis_ai.rollout_server.settings import ServerSettings
from osmosis_ai.rollout_server.trainer import delivery
from tests.osmosis_ai.rollout_server.agents import Asking
from tests.osmosis_ai.rollout_server.clock import Clock
from tests.osmosis_ai.rollout_server.trainer import (
    KEY,
    PATIENCE_S,
    Reply,
    Served,
    Trainer,
    served,
)


def test_the_callback_says_all_that_the_contract_lists(
    serve: Callable[..., Served], trainer: Trainer
):
    serve(Asking()).init("r", trainer)
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
    assert (metrics["num_llm_calls"], metrics["prompt_tokens"], metrics["response_tokens"]) == (
        1,
        3,
        2,
    )
    [(path, headers)] = [one for one in trainer.headers if one[0].endswith("completed")]
    assert (path, headers["idempotency-key"]) == ("/v1/rollout/completed", "r")


def test_tokens_that_the_trainer_does_not_report_are_left_out(
    serve: Callable[..., Served], trainer: Trainer
):
    trainer.answer = lambda body: {"choices": [{"message": {"content": "hello"}}]}
    serve(Asking()).init("r", trainer)
    metrics = trainer.result("r")["metrics"]
    assert metrics["num_llm_calls"] == 1
    assert not {"prompt_tokens", "response_tokens", "max_context_tokens"} & metrics.keys()


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_2xx_is_success(serve: Callable[..., Served], trainer: Trainer, status: int):
    trainer.take = lambda body, count: Reply(status)
    served = serve(Asking())
    served.init("r", trainer)
    trainer.wait_for("r")
    served.wait_for_delivery("r", "delivered")
    assert trainer.tried["r"] == 1


def test_5xx_is_retried_beyond_one_round_until_it_is_taken(
    serve: Callable[..., Served], trainer: Trainer
):
    trainer.take = lambda body, count: Reply(503 if count < 8 else 200)
    served = serve(Asking())
    served.init("r", trainer)
    assert trainer.result("r")["status"] == "COMPLETED"
    assert trainer.tried["r"] == 8
    served.wait_for_delivery("r", "delivered")
    assert served.metrics()['osmosis_callbacks_total{outcome="delivered"}'] == 1


@pytest.mark.parametrize("status", [400, 404, 409, 422, 301])
def test_4xx_and_redirects_are_final_and_the_result_is_kept(
    serve: Callable[..., Served], trainer: Trainer, status: int
):
    trainer.take = lambda body, count: Reply(status)
    served = serve(Asking())
    served.init("r", trainer)
    record = served.wait_for_delivery("r", "refused")
    assert record["result"]["final_messages"][-1]["content"] == "hello"
    assert (record["state"], record["status"]) == ("ended", "COMPLETED")
    assert trainer.tried["r"] == 1


def test_results_reach_a_trainer_that_was_away_once_each(
    serve: Callable[..., Served], trainer: Trainer
):
    served = serve(Asking())
    names = [f"r{number}" for number in range(20)]
    trainer.take = lambda body, count: Reply(500)
    for name in names:
        assert served.init(name, trainer).status == 202
    for name in names:
        served.wait_for_delivery(name, "pending")
    trainer.stop()
    assert served.metrics()["osmosis_results_undelivered"] == len(names)
    trainer.take = lambda body, count: Reply()
    trainer.start()
    trainer.wait_for(*names)
    assert all(len(trainer.results[name]) == 1 for name in names)
    for name in names:
        served.wait_for_delivery(name, "delivered")
    assert served.metrics()["osmosis_results_undelivered"] == 0


def test_a_trainer_that_cannot_be_trusted_yet_is_tried_again(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/missing")
    failed: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(caplog.handler, "emit", lambda record: failed.put(record.getMessage()))
    served = serve(Asking(), flush_s=0.1)
    served.init("r", "https://127.0.0.1:9")
    for _ in range(2):
        while not (told := failed.get(timeout=PATIENCE_S)).startswith("callback_failed"):
            pass
        assert "SSL_CERT_FILE names '/nowhere/missing'" in told
    assert served.record("r")["delivery"] == "pending"


def test_a_result_refused_for_its_key_is_delivered_with_the_next_one(
    serve: Callable[..., Served], trainer: Trainer
):
    trainer.take = lambda body, count: Reply(401 if count == 1 else 200)
    served = serve(Asking())
    first = served.init("r", trainer, api_key="the-trainers-own-key-99")
    served.wait_for_delivery("r", "refused")
    again = served.init("r", trainer, api_key="its-newer-key-98")
    assert (again.status, again.body) == (202, first.body)
    trainer.result("r")
    assert trainer.headers[-1][1]["authorization"] == "Bearer its-newer-key-98"
    assert len(trainer.calls) == 1


def test_no_result_is_lost_over_an_error_that_nobody_foresaw(
    serve: Callable[..., Served], trainer: Trainer, monkeypatch: pytest.MonkeyPatch
):
    ask, failures = delivery.TrainerChannel.ask, iter([RuntimeError("unforeseen")])

    async def failing(self: Any, path: str, *rest: Any, **options: Any) -> Any:
        if path == delivery.COMPLETED_PATH and (error := next(failures, None)):
            raise error
        return await ask(self, path, *rest, **options)

    monkeypatch.setattr(delivery.TrainerChannel, "ask", failing)
    served = serve(Asking())
    served.init("r", trainer)
    assert trainer.result("r")["status"] == "COMPLETED"
    assert next(failures, None) is None


@pytest.mark.slow
def test_a_result_that_nobody_takes_expires(serve: Callable[..., Served], trainer: Trainer):
    trainer.take = lambda body, count: Reply(500)
    served = serve(Asking(), record_ttl_seconds=0.5)
    served.init("r", trainer)
    served.wait_until_forgotten("r")
    assert served.metrics()['osmosis_callbacks_total{outcome="expired"}'] == 1


def test_undelivered_results_hold_up_new_rollouts_and_nothing_else(
    serve: Callable[..., Served], trainer: Trainer
):
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
    assert served.metrics()["osmosis_results_bytes"] <= 30_000


def test_a_new_key_that_comes_while_the_old_one_is_refused_delivers_the_result(
    serve: Callable[..., Served], trainer: Trainer
):
    def take(body: dict[str, Any], count: int) -> Reply:
        if count > 1:
            return Reply()
        assert served.init("r", trainer, api_key="its-newer-key-98").status == 202
        return Reply(401)

    trainer.take = take
    served = serve(Asking())
    served.init("r", trainer, api_key="the-trainers-own-key-99")
    trainer.result("r")
    served.wait_for_delivery("r", "delivered")
    assert trainer.headers[-1][1]["authorization"] == "Bearer its-newer-key-98"


# On disk.


def run(trainer: Trainer, folder: Path, agent: Any = None, **more: Any) -> Any:
    settings = ServerSettings(
        local=True, state_dir=folder, drain_s=0.1, flush_s=0.1, cancel_grace_s=0.2, **more
    )
    return served(create_app(agent or Asking(), settings=settings, api_key=KEY), KEY)


def test_a_result_outlives_the_process(trainer: Trainer, tmp_path: Path):
    trainer.take = lambda body, count: Reply(500)
    with run(trainer, tmp_path) as first:
        answer = first.init("r", trainer)
        first.wait_for_delivery("r", "pending")
    assert not trainer.results
    trainer.take = lambda body, count: Reply()
    with run(trainer, tmp_path) as second:
        assert trainer.result("r")["final_messages"][-1]["content"] == "hello"
        second.wait_for_delivery("r", "delivered")
        assert second.init("r", trainer).body == answer.body
        assert second.init("r", trainer, max_turns=3).status == 409
    with run(trainer, tmp_path) as third:
        assert third.record("r")["delivery"] == "delivered"
    assert len(trainer.results["r"]) == 1
    assert len(trainer.calls) == 1


def test_no_key_is_on_disk_and_the_init_brings_it_again(trainer: Trainer, tmp_path: Path):
    secret = "the-trainers-own-key-99"
    trainer.take = lambda body, count: Reply(500)
    with run(trainer, tmp_path) as first:
        first.init("r", trainer, api_key=secret)
        first.wait_for_delivery("r", "pending")
    files = list(tmp_path.glob("*.rollout.json"))
    assert len(files) == 1
    for file in tmp_path.iterdir():
        assert secret not in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    trainer.take = lambda body, count: Reply()
    trainer.headers.clear()
    with run(trainer, tmp_path) as second:
        assert second.record("r")["delivery"] == "needs_key"
        assert second.init("r", trainer, api_key="its-newer-key-98").status == 202
        trainer.result("r")
        assert trainer.headers[-1][1]["authorization"] == "Bearer its-newer-key-98"


def test_a_result_whose_key_never_comes_again_is_given_up(
    trainer: Trainer, tmp_path: Path, clock: Clock
):
    with run(trainer, tmp_path) as first:
        trainer.take = lambda body, count: Reply(500)
        first.init("r", trainer, api_key="the-trainers-own-key-99")
        first.wait_for_delivery("r", "pending")
    with run(trainer, tmp_path, record_ttl_s=0.1) as second:
        assert second.record("r")["delivery"] == "needs_key"
        clock.now += 0.2
        second.wait_until_forgotten("r")
        assert second.metrics()['osmosis_callbacks_total{outcome="expired"}'] == 1
    [file] = tmp_path.glob("*.rollout.json")
    assert '"delivery": "expired"' in file.read_text()


def test_a_result_that_was_given_up_stays_on_disk_though_there_is_no_room_in_memory(
    trainer: Trainer, tmp_path: Path, clock: Clock
):
    with run(trainer, tmp_path) as first:
        trainer.take = lambda body, count: Reply(500)
        first.init("r", trainer, api_key="the-trainers-own-key-99")
        first.wait_for_delivery("r", "pending")
    with run(trainer, tmp_path, record_ttl_s=0.1, max_held_bytes=10) as second:
        clock.now += 0.2
        second.wait_until_forgotten("r")
    [file] = tmp_path.glob("*.rollout.json")
    document = json.loads(file.read_text())
    assert document["delivery"] == "expired"
    assert json.loads(document["result"])["rollout_id"] == "r"


def test_a_rollout_that_a_crash_cut_off_ends_in_an_error(trainer: Trainer, tmp_path: Path):
    with run(trainer, tmp_path) as first:
        first.init("r", trainer)
        trainer.result("r")
        first.wait_for_delivery("r", "delivered")
    [file] = tmp_path.glob("*.rollout.json")
    text = file.read_text()
    cut = text.replace('"delivery": "delivered"', '"delivery": "none"')
    start, end = cut.index('"result": "'), cut.rindex('"')
    file.write_text(cut[:start] + '"result": null' + cut[end + 1 :])
    trainer.results.clear()
    with run(trainer, tmp_path):
        found = trainer.result("r")
        assert found["status"] == "ERROR"
        assert "restarted" in found["error_message"]


def test_a_file_that_cannot_be_read_is_left_alone(trainer: Trainer, tmp_path: Path):
    broken = tmp_path / "x.rollout.json"
    broken.write_text('{"version": 1, ')
    with run(trainer, tmp_path) as running:
        assert running.health()["status"] == "healthy"
    assert broken.exists()


def test_what_waits_to_be_written_is_written_though_the_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    released, write = threading.Event(), journal._replace

    def slow(path: Path, document: bytes) -> None:
        assert released.wait(PATIENCE_S)
        write(path, document)

    async def stopping() -> None:
        kept = Journal(tmp_path)
        rollouts = [
            Rollout(rollout_id=name, identity=name, digest="", server_url="http://localhost")
            for name in "abc"
        ]
        saving = [asyncio.ensure_future(kept.save(rollout)) for rollout in rollouts]
        await asyncio.sleep(0)
        for each in saving:
            each.cancel()
        await asyncio.wait(saving)
        released.set()
        kept.close()

    monkeypatch.setattr(journal, "_replace", slow)
    asyncio.run(stopping())
    assert len([*tmp_path.glob("*.rollout.json")]) == 3


def test_two_servers_do_not_share_a_folder(tmp_path: Path):
    first = Journal(tmp_path)
    with pytest.raises(JournalInUse, match="in use"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()


@pytest.mark.slow
def test_a_record_that_cannot_be_deleted_is_said_and_the_others_are_forgotten(
    trainer: Trainer, tmp_path: Path, caplog: pytest.LogCaptureFixture, clock: Clock
):
    caplog.set_level("INFO", logger="osmosis.server")
    settings = ServerSettings(local=True, state_dir=tmp_path, record_ttl_s=1.0)
    with served(create_app(Asking(), settings=settings, api_key=KEY)) as running:
        running.init("first", trainer)
        running.wait_for_delivery("first", "delivered")
        [file] = tmp_path.glob("*.rollout.json")
        until = time.monotonic() + 60.0
        while json.loads(file.read_bytes())["delivery"] != "delivered":  # nothing writes it later
            assert time.monotonic() < until
            time.sleep(0.002)
        file.unlink()
        file.mkdir()
        running.init("second", trainer)
        trainer.result("second")
        running.wait_for_delivery("second", "delivered")
        clock.now += 2.0
        running.wait_until_forgotten("second")
    told = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("journal_failed rollout_id=first") for line in told)


def test_a_disk_that_fails_refuses_the_init(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from osmosis_ai.rollout_server import journal

    def full(path: Path, document: bytes) -> None:
        raise OSError(28, "No space left on device")

    with run(trainer, tmp_path) as running:
        with monkeypatch.context() as patch:
            patch.setattr(journal, "_replace", full)
            refused = running.init("r", trainer)
            assert refused.status == 503
            assert "No space left" in refused.json()["error"]
        assert running.health()["active_rollouts"] == 0
        assert running.init("r", trainer).status == 202
        assert trainer.result("r")["status"] == "COMPLETED"


def test_the_metrics_of_a_rollout_that_failed_are_those_until_then(
    serve: Callable[..., Served], trainer: Trainer
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


def test_the_metrics_of_a_rollout_whose_trainer_refuses_have_its_time(
    serve: Callable[..., Served], trainer: Trainer
):
    trainer.answer = lambda body: Reply(400)
    serve(Asking()).init("r", trainer)
    metrics = trainer.result("r")["metrics"]
    assert metrics["total_latency_ms"] >= metrics["llm_latency_ms"] > 0.0
