"""What plain callables are given, and the conversations that their returned values become."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from osmosis_ai.agents.base import FunctionAgent
from osmosis_ai.agents.plain_callable import CallableAgent, input_kind
from osmosis_ai.rollout import OsmosisValidationError, RolloutContext, RolloutResult
from osmosis_ai.rollout.testing import ScriptedModel, rollout

if TYPE_CHECKING:
    from decimal import Decimal

OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "6 x 7?"}]


class Columns(TypedDict):
    user_prompt: str


class Bot:
    async def __call__(self, question):
        return question.upper()

    def ask(self, question, style="plain"):
        return f"{style}: {question}"


class Answered:
    """A message as client libraries have it."""

    role = "assistant"

    def model_dump(self, *, exclude_none):
        return {"role": "assistant", "content": "42"}


def said(function: Any) -> list[dict[str, Any]]:
    """The conversation of one rollout of a callable."""
    result = rollout(CallableAgent(function), ScriptedModel([]), messages=OPENING)
    return result.final_messages


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda question: "", "text"),
        (lambda text, model="m", *rest, **more: "", "text"),
        (lambda messages: "", "messages"),
        (lambda row: "", "row"),
        (Bot(), "text"),
        (Bot().ask, "text"),
        (functools.partial(lambda style, question: "", "plain"), "text"),
        (functools.partial(lambda style, question: "", style="plain"), "text"),
    ],
)
def test_the_name_of_the_required_parameter_says_what_it_is_given(function, kind):
    assert input_kind(function) == kind


def by_list(history: list[dict[str, str]]) -> str: ...
def by_sequence(history: Sequence[Any]) -> str: ...
def by_dict(record: dict) -> str: ...
def by_mapping(record: Mapping[str, Any]) -> str: ...
def by_typed_dict(record: Columns) -> str: ...
def by_text(history: str) -> Decimal: ...
async def by_context(context: RolloutContext) -> RolloutResult: ...


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (by_list, "messages"),
        (by_sequence, "messages"),
        (by_dict, "row"),
        (by_mapping, "row"),
        (by_typed_dict, "row"),
        (by_text, "text"),
        (by_context, "context"),
    ],
)
def test_its_annotation_says_so_too(function, kind):
    assert input_kind(function) == kind


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: "", r"<lambda> takes \(\); an agent takes one required parameter: the question"),
        (lambda a, b: "", r"<lambda> takes \(a, b\); an agent takes one"),
        (lambda *all: "", r"<lambda> takes \(all\); an agent takes one"),
        (lambda ctx: "", "takes a context: declare it `async def`"),
        (min, "min has no signature that can be read: wrap it in a function"),
    ],
)
def test_a_callable_of_other_parameters_is_refused(function, message):
    with pytest.raises(TypeError, match=message):
        CallableAgent(function)


def test_a_function_of_the_context_stays_an_agent_function():
    async def agent(ctx, temperature=0.5):
        return ctx.complete([{"role": "assistant", "content": "42"}])

    assert input_kind(agent) == "context"
    assert rollout(FunctionAgent(agent), ScriptedModel([])).status == "COMPLETED"


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("42", "42"),
        (42, "42"),
        (True, "true"),
        ({"label": "späm"}, '{"label": "späm"}'),
        ([1, "two"], '[1, "two"]'),
        ([], "[]"),
        ({"role": "assistant", "content": "42"}, "42"),
        (Answered(), "42"),
    ],
)
def test_what_it_returns_is_the_answer(returned, text):
    assert said(lambda question: returned) == [*OPENING, {"role": "assistant", "content": text}]


def test_a_list_of_messages_follows_those_of_the_row_or_begins_with_them():
    call = {"id": "1", "type": "function", "function": {"name": "times", "arguments": "{}"}}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        {"role": "assistant", "content": "42"},
    ]
    assert said(lambda question: turns) == [*OPENING, *turns]
    assert said(lambda messages: [*messages, *turns]) == [*OPENING, *turns]
    result = rollout(CallableAgent(lambda question: turns), ScriptedModel([]), messages=OPENING)
    assert result.metrics is not None and result.metrics.num_tool_calls == 1


def test_messages_that_it_changes_stay_those_of_the_row():
    def forgetful(messages):
        messages.clear()
        return "42"

    assert said(forgetful) == [*OPENING, {"role": "assistant", "content": "42"}]


def test_a_result_of_its_own_is_taken_as_it_is():
    result = RolloutResult(status="ERROR", error_message="no")
    made = rollout(CallableAgent(lambda row: result), ScriptedModel([]), messages=OPENING)
    assert made.status == "ERROR" and made.error_message == "no"


def test_a_row_has_its_columns_and_no_position():
    seen = []
    rollout(
        CallableAgent(lambda row: seen.append(row) or "ok"),
        ScriptedModel([]),
        messages=OPENING,
        metadata={"level": 3, "ground_truth": "42", "row_index": 0, "execution_mode": "eval"},
    )
    assert seen == [
        {"level": 3, "ground_truth": "42", "system_prompt": "Be brief.", "user_prompt": "6 x 7?"}
    ]


@pytest.mark.parametrize(
    ("returned", "came"),
    [
        (None, "None"),
        (object(), "a value of type object, which JSON does not have"),
        ({"a": float("nan")}, r"a dict that JSON does not have \(Out of range float"),
    ],
)
def test_anything_else_is_its_error(returned, came):
    with pytest.raises(OsmosisValidationError, match=rf"returned {came}.*; expected text, a mess"):
        said(lambda question: returned)


def test_what_streams_its_answer_is_refused():
    async def streamed(question):
        yield "42"

    for function, came in ((streamed, "async_generator"), (lambda question: iter("42"), "str_")):
        with pytest.raises(
            OsmosisValidationError, match=f"returned a value of type {came}.*; expected"
        ):
            said(function)


def test_a_synchronous_one_runs_in_a_thread_and_an_async_one_is_awaited():
    names = []

    def here(question):
        names.append(threading.current_thread().name)
        return "42"

    assert said(here)[-1]["content"] == "42" and names == ["osmosis-call"]
    assert said(Bot())[-1]["content"] == "6 X 7?"
    assert said(lambda question: Bot()(question))[-1]["content"] == "6 X 7?"
