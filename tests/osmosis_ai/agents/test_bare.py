"""A bare request and bare metrics are told from the wire's models by nothing but `type`."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from osmosis_ai.agents import bare
from osmosis_ai.rollout import RolloutMetrics, RolloutRequest, RolloutResponse, RolloutStatus

REQUEST = {
    "rollout_id": "eval-0-run-0",
    "messages": [{"role": "user", "content": "hi"}],
    "completion_params": {"temperature": 0.0},
    "metadata": {"ground_truth": "4"},
    "max_turns": 3,
}
METRICS = {"llm_latency_ms": 1.5, "num_llm_calls": 2, "prompt_tokens": None, "response_tokens": 3}
PAIRS = {
    "request": lambda: (
        bare.eval_request(**copy.deepcopy(REQUEST)),
        RolloutRequest(server_url=bare.EVAL_SERVER_URL, **REQUEST),
    ),
    "metrics": lambda: (bare.metrics(**METRICS), RolloutMetrics(**METRICS)),
}


@pytest.fixture(params=list(PAIRS))
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return PAIRS[request.param]()


def test_it_is_an_instance_of_the_model(pair):
    light, model = pair
    assert isinstance(light, type(model))
    assert isinstance(light, BaseModel)
    assert not isinstance(light, RolloutResponse)
    assert light.__class__ is type(model)


def test_it_equals_the_model_and_nothing_else(pair):
    light, model = pair
    assert light == model
    assert model == light
    assert light == copy.deepcopy(light)
    assert light != dict(model)
    with pytest.raises(TypeError, match="unhashable"):
        hash(light)


@pytest.mark.parametrize(
    "told",
    [
        repr,
        str,
        dict,
        vars,
        lambda value: value.model_dump(),
        lambda value: value.model_dump_json(),
        lambda value: value.model_dump(exclude_defaults=True),
        lambda value: value.model_copy(update={"max_turns": 5}).model_dump(),
        lambda value: copy.copy(value).model_dump(),
        lambda value: copy.deepcopy(value).model_dump(),
        lambda value: pickle.loads(pickle.dumps(value)).model_dump(),
        lambda value: [getattr(value, name) for name in type(value.model_copy()).model_fields],
        lambda value: sorted(type(value).model_fields),
    ],
)
def test_it_tells_what_the_model_tells(pair, told):
    light, model = pair
    assert told(light) == told(model)


def test_what_is_set_on_it_is_set_on_the_model_and_on_no_copy():
    request = bare.eval_request(**copy.deepcopy(REQUEST))
    copied, dumped = copy.copy(request), request.model_copy()
    request.max_turns = 7
    assert request.model_dump()["max_turns"] == 7
    assert (copied.max_turns, dumped.max_turns) == (3, 3)


def test_what_neither_has_is_an_attribute_error_that_names_the_model():
    with pytest.raises(AttributeError, match=r"'RolloutRequest' object has no attribute 'prompt'"):
        bare.eval_request(**REQUEST).prompt  # noqa: B018


def test_other_models_take_it_as_the_model():
    class State(BaseModel):
        request: RolloutRequest

    state = State(request=bare.eval_request(**REQUEST))
    assert state.model_dump()["request"]["rollout_id"] == "eval-0-run-0"
    response = RolloutResponse(
        rollout_id="r", status=RolloutStatus.COMPLETED, metrics=bare.metrics(num_llm_calls=2)
    )
    assert json.loads(response.model_dump_json())["metrics"] == (
        RolloutMetrics(num_llm_calls=2).model_dump()
    )


def test_its_id_is_checked():
    with pytest.raises(ValueError, match="a rollout_id has"):
        bare.eval_request(rollout_id="../x", messages=[])


ROLLOUT = """
import asyncio
import sys

from osmosis_ai.rollout import ModelLLM, RolloutAgentLoop, run_rollout
from osmosis_ai.agents.bare import eval_request


class Agent(RolloutAgentLoop):
    name = "reader"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        ctx.record_tool_call(2.0)
        return ctx.complete([*ctx.request.messages], reward=float(ctx.request.max_turns))


async def main():
    request = eval_request(rollout_id="r", messages=[{"role": "user", "content": "hi"}])
    result = await run_rollout(Agent(), request, ModelLLM(None))
    assert (result.reward, result.metrics.num_tool_calls) == (10.0, 1), result
    print("pydantic" in sys.modules)


asyncio.run(main())
"""


def test_a_rollout_that_only_reads_fields_does_without_pydantic():
    ran = subprocess.run(
        [sys.executable, "-c", ROLLOUT], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "False"


def test_what_is_no_field_cannot_be_set(pair):
    for value in pair:
        with pytest.raises(ValueError, match='object has no field "note"'):
            value.note = "x"
