from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError

import pytest

from osmosis_ai.models.base import ChatCompletion, Usage
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.rollout import ModelLLM, OsmosisRolloutError, OsmosisValidationError
from osmosis_ai.rollout.testing import ScriptedModel

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


class Told:
    """A model that gives ready completions."""

    name, endpoint = "named", "here"

    def __init__(self, *completions):
        self.left = list(completions)

    async def complete(self, messages, *, tools=None, params=None):
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self):
        pass


def completion(usage=None, message=None, **more):
    message = message or {"role": "assistant", "content": "x"}
    return ChatCompletion(message=message, usage=usage or Usage(), **more)


def ask(llm, times=1, **params):
    async def calls():
        return [await llm.chat_completions([], **params) for _ in range(times)]

    return asyncio.run(calls())


def test_default_parameters_are_sent_unless_the_call_says_otherwise():
    model = ScriptedModel(["a", "b", "c"])
    llm = ModelLLM(model, params={"temperature": 0.5, "seed": 7})
    ask(llm)
    ask(llm, temperature=1.0, stop=["x"])
    ask(llm, temperature=None)
    sent = [asked.params for asked in model.requests]
    assert sent == [
        {"temperature": 0.5, "seed": 7},
        {"temperature": 1.0, "seed": 7, "stop": ["x"]},
        {"seed": 7},
    ]


def test_the_evaluated_model_is_not_the_agents_to_choose():
    model = ScriptedModel(["a"])
    ask(ModelLLM(model), model="another", rollout_id="r", stream=False)
    assert model.requests[0].params == {}
    with pytest.raises(OsmosisValidationError, match="leave out stream=True"):
        ask(ModelLLM(model), stream=True)


@pytest.mark.parametrize(
    ("own", "given", "sent"),
    [
        ([TOOL], {}, [TOOL]),
        ([], {}, []),
        (None, {}, []),
        ([TOOL], {"tools": None}, []),
        ([TOOL], {"tools": []}, []),
        ([], {"tools": [TOOL]}, [TOOL]),
    ],
)
def test_tools_are_sent_unless_the_call_brings_its_own(own, given, sent):
    model = ScriptedModel(["a"])
    ask(ModelLLM(model, tools=own), **given)
    assert model.requests[0].tools == sent


def test_totals_are_those_of_all_calls():
    llm = ModelLLM(
        Told(
            completion(Usage(10, 5, 15), retries=2, cost_usd=0.25, finish_reason="tool_calls"),
            completion(Usage(20, 1, None), cost_usd=0.5, finish_reason="stop"),
        ),
        record=True,
    )
    first, second = ask(llm, times=2)
    assert first.usage == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert second.usage == {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}
    assert (llm.prompt_tokens, llm.response_tokens, llm.total_tokens) == (30, 6, 36)
    assert (llm.num_llm_calls, llm.retries, llm.cost_usd) == (2, 2, 0.75)
    assert [call["total_tokens"] for call in llm.calls] == [15, 21]
    assert llm.calls[0]["finish_reason"] == "tool_calls"
    took = llm.get_metrics()
    assert (took.num_llm_calls, took.prompt_tokens, took.max_context_tokens) == (2, 30, 21)
    assert took is not llm.get_metrics()


def test_the_finish_reason_is_that_of_the_last_answer():
    reasons = ["length", "stop", "length", None]
    llm = ModelLLM(Told(*(completion(finish_reason=reason) for reason in reasons)))
    seen = [llm.measures()["finish_reason"]]
    for _ in reasons:
        ask(llm)
        seen.append(llm.measures()["finish_reason"])
    assert seen == [None, "length", "stop", "length", "none"]


def test_a_rollout_without_a_call_took_nothing():
    llm = ModelLLM(Told())
    assert (llm.prompt_tokens, llm.total_tokens, llm.num_llm_calls, llm.cost_usd) == (0, 0, 0, None)


def test_what_one_call_does_not_tell_is_unknown_in_all():
    llm = ModelLLM(Told(completion(Usage(1, 2, 3), cost_usd=1.0), completion(Usage(None, 2, None))))
    _first, second = ask(llm, times=2)
    assert second.usage == {"prompt_tokens": 0, "completion_tokens": 2, "total_tokens": 0}
    assert second.finish_reason == "stop"
    assert (llm.prompt_tokens, llm.response_tokens, llm.total_tokens) == (None, 4, None)
    assert (llm.cost_usd, llm.max_context_tokens) == (None, None)
    assert llm.calls == []


def test_an_answer_without_particulars_has_zeros_empty_lists_and_stop():
    message = {"role": "assistant"}
    (answer,) = ask(ModelLLM(Told(completion(message=message))))
    assert (answer.content, answer.finish_reason) == (None, "stop")
    assert (answer.token_ids, answer.logprobs, answer.tool_calls) == ([], [], [])
    assert answer.usage == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    with pytest.raises(FrozenInstanceError):
        answer.finish_reason = "length"


def test_the_last_calls_error_is_kept_and_its_retries_are_counted():
    broken = ProviderError("503 from here after 4 tries", kind="overloaded", tries=4)
    llm = ModelLLM(Told(broken, completion(Usage(1, 1, 2))))
    with pytest.raises(ProviderError) as caught:
        ask(llm)
    assert caught.value is broken is llm.last_error
    assert (llm.retries, llm.num_llm_calls) == (3, 0)
    ask(llm)
    assert llm.last_error is None
    assert (llm.retries, llm.total_tokens) == (3, 2)


def test_after_the_end_of_the_rollout_there_are_no_more_calls():
    model = ScriptedModel(["a"])
    llm = ModelLLM(model)
    llm.close()
    with pytest.raises(OsmosisRolloutError, match="the rollout has ended"):
        ask(llm)
    assert model.requests == []


def test_tool_calls_are_mended_so_that_the_history_can_be_sent_back():
    calls = [
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"id": "", "type": "function", "function": {"name": "f", "arguments": None}},
        {"id": "same", "type": "function", "function": {"name": "f", "arguments": "{bad"}},
        {"id": "same", "type": "function", "function": {"name": "f", "arguments": [1]}},
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    (answer,) = ask(ModelLLM(Told(completion(message=message))))
    assert answer.has_tool_calls
    assert [
        (call["id"], call["type"], call["function"]["arguments"]) for call in answer.tool_calls
    ] == [
        ("call_1_0", "function", '{"a": 1}'),
        ("call_1_1", "function", "{}"),
        ("same", "function", "{bad"),
        ("same", "function", "[1]"),
    ]


def test_invented_ids_of_tool_calls_are_unique_in_a_conversation():
    said = [{"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "g"}}]}, None]
    answers = [completion(message=each) for each in (*said, {"tool_calls": [{"function": {}}]})]
    calls = [
        call["id"] for answer in ask(ModelLLM(Told(*answers)), 3) for call in answer.tool_calls
    ]
    assert calls == ["call_1_0", "call_1_1", "call_3_0"]


@pytest.mark.parametrize("nothing", [None, []])
def test_tool_calls_that_are_none_are_left_out_of_the_message(nothing):
    message = {"role": "assistant", "content": "x", "tool_calls": nothing}
    (answer,) = ask(ModelLLM(Told(completion(message=message))))
    assert answer.message == {"role": "assistant", "content": "x"}
    assert (answer.has_tool_calls, answer.tool_calls) == (False, [])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (None, None),
        ("", ""),
        (
            [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}],
            "ab",
        ),
        (7, ""),
    ],
)
def test_the_content_of_an_answer_is_text(content, text):
    message = {"role": "assistant", "content": content}
    (answer,) = ask(ModelLLM(Told(completion(message=message))))
    assert answer.content == text


class Sent:
    """A model that keeps what it is sent."""

    name, endpoint = "m", "nowhere"

    async def complete(self, messages, **sent):
        self.sent = sent
        return completion()


def test_an_sdks_extra_body_and_headers_are_merged_into_the_request():
    model = Sent()
    llm = ModelLLM(model, params={"top_k": 1, "temperature": 0.5})
    body = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}
    asyncio.run(llm.chat_completions([], seed=1, extra_body=body, extra_headers={"X-Row": "7"}))
    assert model.sent == {
        "tools": None,
        "params": {**body, "temperature": 0.5, "seed": 1},
        "headers": {"X-Row": "7"},
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"extra_headers": {"Authorization": "Bearer x"}}, "holds the key"),
        ({"extra_headers": {"api-key": "x"}}, "holds the key"),
        ({"extra_headers": {"Host": "x"}}, "set by the request itself"),
        ({"extra_headers": {"X-A": "a\r\nX-B: b"}}, "must be printable ASCII"),
        ({"extra_headers": {"X A": "a"}}, "no name of a header"),
        ({"extra_headers": {"X-A": 1}}, "must be printable ASCII"),
        ({"extra_headers": "X-A: 1"}, "must be a dict"),
        ({"extra_body": [1]}, "must be a dict"),
        ({"extra_body": {"stream": True}}, "neither stream nor messages"),
        ({"extra_body": {"messages": []}}, "neither stream nor messages"),
        ({"extra_query": {"a": 1}}, "put a query into --osmosis-base-url"),
        ({"timeout": 3}, "asyncio.wait_for"),
    ],
)
def test_what_no_call_may_add_is_refused_in_words(given, said):
    with pytest.raises(OsmosisValidationError, match=said):
        asyncio.run(ModelLLM(Sent()).chat_completions([], **given))
