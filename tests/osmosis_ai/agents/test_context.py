from __future__ import annotations

import asyncio
import contextvars
import json
import stat

import pytest

from osmosis_ai.rollout import (
    OsmosisRolloutError,
    OsmosisValidationError,
    RolloutContext,
    RolloutSample,
    get_rollout_context,
)
from osmosis_ai.rollout.testing import ScriptedModel, context, request
from osmosis_ai.secret import Secret


class Source:
    def __init__(self, sample):
        self.sample = sample

    async def get_sample(self):
        return self.sample


def test_chat_asks_the_model_with_the_calls_own_parameters():
    model = ScriptedModel(["hello"])
    ctx = context(model, user="hi", completion_params={"temperature": 0.5})
    answer = asyncio.run(ctx.chat(list(ctx.request.messages), **ctx.request.completion_params))
    assert answer.content == "hello"
    assert answer.message == {"role": "assistant", "content": "hello"}
    assert model.requests[0].params == {"temperature": 0.5}
    assert model.requests[0].messages == [{"role": "user", "content": "hi"}]


def test_complete_tells_status_messages_reward_and_what_it_took():
    ctx = context(ScriptedModel(["a", "b"], tokens=5))

    async def talk():
        await ctx.chat([])
        await ctx.chat([])

    asyncio.run(talk())
    ctx.record_tool_call(latency_ms=2.0)
    ctx.record_tool_call()
    result = ctx.complete([{"role": "assistant", "content": "b"}], reward=0.5)
    assert (result.status, result.finish_reason, result.reward) == ("COMPLETED", "stop", 0.5)
    assert result.error_message is None
    took = result.metrics
    assert (took.num_llm_calls, took.num_tool_calls, took.tool_latency_ms) == (2, 2, 2.0)
    assert (took.prompt_tokens, took.response_tokens, took.max_context_tokens) == (10, 10, 10)
    assert took.total_latency_ms >= took.llm_latency_ms >= 0


def test_error_tells_the_message():
    result = context(ScriptedModel([])).error("no tools", [{"role": "user", "content": "x"}])
    assert (result.status, result.finish_reason) == ("ERROR", "error")
    assert (result.error_message, len(result.final_messages)) == ("no tools", 1)
    assert context(ScriptedModel([])).error(ValueError("bad")).error_message == "bad"
    named = context(ScriptedModel([])).error(error_message="no tools", final_messages=[])
    assert named.error_message == "no tools"


def test_what_a_rollout_was_not_given_says_so_when_asked_for():
    loop = RolloutContext(request(rollout_id="r"))
    with pytest.raises(OsmosisRolloutError, match=r"rollout 'r' has no chat_completions_url: only"):
        assert loop.chat_completions_url
    with pytest.raises(OsmosisRolloutError, match=r"use ctx.chat"):
        assert loop.api_key
    workflow = RolloutContext(rollout_id="w", chat_completions_url="http://127.0.0.1:1/v1")
    with pytest.raises(OsmosisRolloutError, match="has no request"):
        assert workflow.request
    with pytest.raises(OsmosisRolloutError, match=r"has no llm.*use chat_completions_url"):
        asyncio.run(workflow.chat([]))


@pytest.mark.parametrize("key", ["key-of-this-rollout", Secret("key-of-this-rollout")])
def test_a_workflows_context_gives_url_and_key_and_never_shows_the_key(key):
    ctx = RolloutContext(rollout_id="w", chat_completions_url="http://127.0.0.1:1/v1", api_key=key)
    assert ctx.chat_completions_url == "http://127.0.0.1:1/v1"
    assert ctx.api_key == "key-of-this-rollout"
    assert "key-of" not in repr(ctx) + str(ctx) + repr(vars(ctx))


def test_there_is_no_ambient_context_outside_of_a_rollout():
    assert get_rollout_context() is None
    outer, inner = RolloutContext(rollout_id="a"), RolloutContext(rollout_id="b")
    with outer:
        with inner, inner:
            assert get_rollout_context() is inner
        assert get_rollout_context() is outer
    assert get_rollout_context() is None


def test_a_hundred_concurrent_rollouts_see_their_own_context_in_tasks_and_threads():
    async def one(number: int) -> tuple[str, str, str]:
        with RolloutContext(rollout_id=f"r{number}"):
            await asyncio.sleep(0)

            async def child() -> str:
                await asyncio.sleep(0)
                return get_rollout_context().rollout_id

            in_task = await asyncio.create_task(child())
            in_thread = await asyncio.to_thread(lambda: get_rollout_context().rollout_id)
            return in_task, in_thread, get_rollout_context().rollout_id

    async def main():
        return await asyncio.gather(*(one(number) for number in range(100)))

    assert asyncio.run(main()) == [(f"r{number}",) * 3 for number in range(100)]


def test_a_rollout_that_is_closed_from_outside_of_its_context_is_left_in_peace():
    ctx = RolloutContext(rollout_id="r")
    contextvars.copy_context().run(ctx.__enter__)
    ctx.__exit__(None, None, None)
    assert get_rollout_context() is None


def test_the_sample_comes_from_the_one_registered_source():
    ctx, sample = RolloutContext(rollout_id="r"), RolloutSample(messages=[])
    assert asyncio.run(ctx.get_sample()) is None
    source = Source(sample)
    ctx.set_sample_source(source)
    ctx.set_sample_source(source)
    assert asyncio.run(ctx.get_sample()) is sample
    with pytest.raises(ValueError, match="has a sample source already"):
        ctx.set_sample_source(Source(sample))


def test_a_source_must_have_get_sample_and_give_a_sample():
    ctx = RolloutContext(rollout_id="r")
    with pytest.raises(TypeError, match="object has none"):
        ctx.set_sample_source(object())
    ctx.set_sample_source(Source([]))
    with pytest.raises(OsmosisValidationError, match="get_sample returned list; expected Rollout"):
        asyncio.run(ctx.get_sample())


def test_log_event_writes_nothing_when_it_is_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ctx = context(ScriptedModel([]))
    assert ctx.debug_enabled is False
    ctx.log_event("turn", number=1)
    assert list(tmp_path.iterdir()) == []


def test_log_event_appends_one_json_line_an_event_to_the_rollouts_own_private_file(tmp_path):
    ctx = context(ScriptedModel([]), rollout_id="eval-0-run-1", debug_dir=tmp_path / "log")
    assert ctx.debug_enabled
    ctx.log_event("turn", number=1, text="a\u2028b\n \ud83d", half="\ud83d")
    ctx.log_event("odd", value=float("nan"), thing=object(), rollout_id="forged")
    file = tmp_path / "log" / "eval-0-run-1.jsonl"
    first, second = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    assert (first["event"], first["number"], first["text"]) == ("turn", 1, "a\u2028b\n \ufffd")
    assert first["half"] == "\ufffd"
    assert first["rollout_id"] == "eval-0-run-1" and first["timestamp"] > 0
    assert "nan" in second["value"] and "object" in second["thing"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_is_warned_about_once_and_switched_off(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    ctx = context(ScriptedModel([]), debug_dir=tmp_path / "file" / "log")
    ctx.log_event("a")
    ctx.log_event("b")
    assert ctx.debug_enabled is False
    assert len(caplog.records) == 1
