from __future__ import annotations

import asyncio
from typing import Any

import pytest

from osmosis_ai.rollout import (
    OsmosisLLMClient,
    OsmosisServerError,
    OsmosisTimeoutError,
    OsmosisTransportError,
    OsmosisValidationError,
    RolloutMetrics,
    RolloutResponse,
    RolloutStatus,
)
from osmosis_ai.rollout.core.exceptions import OsmosisRolloutError
from osmosis_ai.rollout_settings import RolloutClientSettings, reset_settings
from tests.osmosis_ai.rollout_server.trainer import Reply, Trainer, text_answer

HISTORY = [{"role": "user", "content": "hello"}]


def chat(trainer: Trainer | str, history: Any = None, **options: Any) -> Any:
    url = trainer if isinstance(trainer, str) else trainer.url
    params = options.pop("params", {})

    async def ask() -> Any:
        async with OsmosisLLMClient(url, "r", **options) as client:
            return await client.chat_completions(history or HISTORY, **params)

    return asyncio.run(ask())


def test_a_call_and_its_answer_are_what_the_contract_says(trainer: Trainer):
    trainer.answer = lambda body: {**text_answer("x"), "token_ids": [1, 2], "logprobs": [-0.5, -1]}
    found = chat(trainer, api_key="some-key-1234")
    assert found.message == {"role": "assistant", "content": "x"}
    assert (found.token_ids, found.logprobs) == ([1, 2], [-0.5, -1])
    assert trainer.calls == [
        {
            "model": "default",
            "messages": HISTORY,
            "rollout_id": "r",
            "temperature": 1.0,
            "top_p": 1.0,
            "max_tokens": 512,
            "logprobs": True,
        }
    ]
    assert trainer.headers[0][1]["authorization"] == "Bearer some-key-1234"


def test_the_agents_own_parameters_win(trainer: Trainer):
    chat(trainer, params={"temperature": 0.2, "stop": ["\n"], "model": "other", "max_tokens": None})
    sent = trainer.calls[0]
    assert (sent["model"], sent["temperature"], sent["stop"]) == ("default", 0.2, ["\n"])
    assert "max_tokens" not in sent
    chat(trainer, params={"stop": "x"})
    chat(trainer, params={"stop": None})
    assert [call.get("stop") for call in trainer.calls[1:]] == [["x"], None]


def test_settings_are_those_of_the_process_unless_a_client_is_given_others(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES", "1")
    reset_settings()
    client = OsmosisLLMClient(trainer.url, "r", api_key="some-key-1234")
    reset_settings()
    assert (client.max_retries, client.complete_rollout_retries) == (1, 2)
    assert (client.timeout_seconds, client.api_key) == (300.0, "some-key-1234")
    assert "some-key" not in repr(client)
    failing(trainer, 500, 500)
    settings = RolloutClientSettings(max_retries=0, complete_rollout_retries=0)
    with pytest.raises(OsmosisServerError, match="answered 500"):
        chat(trainer, settings=settings)
    assert len(trainer.calls) == 1


def failing(trainer: Trainer, *statuses: int) -> list[int]:
    left = list(statuses)

    def answer(body: dict[str, Any]) -> Any:
        return Reply(left.pop(0), {"error": "busy"}) if left else text_answer("at last")

    trainer.answer = answer
    return left


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_5xx_is_retried_three_times(trainer: Trainer, status: int):
    failing(trainer, status, status, status)
    assert chat(trainer).content == "at last"
    failing(trainer, *[status] * 4)
    with pytest.raises(OsmosisServerError, match=f"answered {status} after 4 tries") as error:
        chat(trainer)
    assert error.value.status_code == status


def test_a_connection_that_breaks_is_retried_three_times(trainer: Trainer):
    breaks = iter(range(3))

    def answer(body: dict[str, Any]) -> Any:
        if next(breaks, None) is not None:
            raise ConnectionResetError
        return text_answer("at last")

    trainer.answer = answer
    assert chat(trainer).content == "at last"
    assert len(trainer.calls) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 429])
def test_4xx_is_never_retried(trainer: Trainer, status: int):
    failing(trainer, status)
    with pytest.raises(OsmosisValidationError, match=f"answered {status}: .*busy") as error:
        chat(trainer)
    assert error.value.status_code == status
    assert len(trainer.calls) == 1


def test_a_trainer_that_does_not_answer_is_a_timeout(trainer: Trainer):
    async def slowly(body: dict[str, Any]) -> Any:
        await asyncio.sleep(30)
        return text_answer("late")

    trainer.answer = lambda body: slowly(body)
    with pytest.raises(OsmosisTimeoutError, match="did not answer"):
        chat(trainer, timeout_seconds=0.1, max_retries=1)
    assert len(trainer.calls) == 2


@pytest.mark.parametrize("answer", ["text", [], {}, {"choices": []}, {"error": {"message": "x"}}])
def test_an_answer_that_is_none_is_not_asked_for_again(trainer: Trainer, answer: Any):
    trainer.answer = lambda body: answer
    with pytest.raises(OsmosisValidationError):
        chat(trainer)
    assert len(trainer.calls) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "http://nowhere.invalid"])
def test_a_url_that_leads_nowhere_is_said(url: str):
    with pytest.raises(OsmosisRolloutError, match="server_url"):
        chat(url)


def test_what_keeps_a_call_from_the_trainer_is_said(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(OsmosisValidationError, match="not JSON"):
        chat(trainer, [{"role": "user", "content": object()}])
    assert not trainer.calls
    trainer.stop()
    with pytest.raises(OsmosisTransportError, match=r"cannot be reached after 4 tries.*refused"):
        chat(trainer)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/missing")
    with pytest.raises(OsmosisTransportError, match="SSL_CERT_FILE names '/nowhere/missing'"):
        chat("https://127.0.0.1:9")


def test_calls_and_tokens_are_counted_and_a_rollout_is_completed_over_the_same_client(
    trainer: Trainer,
):
    counts: list[int] = []

    def take(body: dict[str, Any], count: int) -> Reply:
        counts.append(count)
        return Reply(500 if count < 3 else 204)

    trainer.take = take

    async def complete() -> None:
        async with OsmosisLLMClient(trainer.url, "r") as client:
            await client.chat_completions(HISTORY)
            await client.chat_completions(HISTORY)
            found = client.get_metrics()
            message = (found.num_llm_calls, found.prompt_tokens, found.response_tokens)
            assert message == (2, 6, 4)
            await client.complete_rollout(
                RolloutResponse(rollout_id="r", status=RolloutStatus.COMPLETED)
            )

    asyncio.run(complete())
    assert counts == [1, 2, 3]
    assert trainer.result("r")["status"] == "COMPLETED"


def test_a_rollout_is_completed_in_parts_and_a_closed_client_asks_no_more(trainer: Trainer):
    async def complete() -> None:
        client = OsmosisLLMClient(trainer.url, "r")
        await client.complete_rollout(
            status="ERROR",
            final_messages=HISTORY,
            finish_reason="error",
            error_message="no tools \ud83d",
            metrics=RolloutMetrics(num_llm_calls=1, prompt_tokens=None),
        )
        await client.close()
        with pytest.raises(OsmosisRolloutError, match="has ended"):
            await client.chat_completions(HISTORY)

    asyncio.run(complete())
    result = trainer.result("r")
    assert (result["rollout_id"], result["status"], result["finish_reason"]) == (
        "r",
        "ERROR",
        "error",
    )
    assert (result["final_messages"], result["error_message"]) == (HISTORY, "no tools \ud83d")
    assert result["metrics"]["num_llm_calls"] == 1
    assert "prompt_tokens" not in result["metrics"]
    assert result["reward"] is None
