from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

import pytest

from osmosis_ai.rollout import (
    ModelLLM,
    OsmosisValidationError,
    RolloutAgentLoop,
    RolloutMetrics,
    RolloutRequest,
    RolloutResult,
    get_rollout_context,
    run_rollout,
)
from osmosis_ai.rollout.testing import ScriptedModel, request, rollout


class Agent(RolloutAgentLoop):
    """An agent that does what its prompt says."""

    name = "agent"

    def __init__(self, act, tools=()):
        self.act = act
        self.tools = list(tools)

    def get_tools(self, request):
        return self.tools

    async def run(self, ctx):
        return self.act(ctx)


def run(act, **fields):
    return rollout(Agent(act), ScriptedModel([]), **fields)


def test_the_agent_gets_its_request_its_tools_and_the_ambient_context():
    tool = {"type": "function", "function": {"name": "f"}}
    seen = []

    def act(ctx):
        seen.append((ctx.request.messages, ctx.tools, get_rollout_context() is ctx))
        return ctx.complete([])

    assert rollout(Agent(act, [tool]), ScriptedModel([]), user="hi").status == "COMPLETED"
    assert seen == [([{"role": "user", "content": "hi"}], [tool], True)]


def test_tools_that_are_handed_in_are_not_asked_for_again():
    class Counting(Agent):
        asked = 0

        def get_tools(self, request):
            type(self).asked += 1
            return []

    async def main(**more):
        agent = Counting(lambda ctx: ctx.complete([{"tools": ctx.tools}]))
        return await run_rollout(agent, request(), ModelLLM(ScriptedModel([])), **more)

    assert asyncio.run(main(tools=["t"])).final_messages == [{"tools": ["t"]}]
    assert Counting.asked == 0
    assert asyncio.run(main()).final_messages == [{"tools": []}]
    assert Counting.asked == 1


def test_what_the_agent_raises_propagates_untouched():
    error = KeyError("mine")

    def act(ctx):
        raise error

    with pytest.raises(KeyError) as caught:
        run(act)
    assert caught.value is error
    assert get_rollout_context() is None


def test_a_result_built_by_hand_gets_its_metrics():
    result = run(lambda ctx: RolloutResult("COMPLETED", [], "stop"))
    assert result.metrics.num_llm_calls == 0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "Agent.run returned None; expected RolloutResult"),
        ([{}], "Agent.run returned list; expected RolloutResult"),
        (RolloutResult("DONE"), "Agent.run returned status 'DONE'; expected COMPLETED or ERROR"),
        (
            RolloutResult("COMPLETED", "text"),
            "returned final_messages that are not a list of dicts",
        ),
        (RolloutResult("COMPLETED", ["text"]), "returned final_messages that are not a list of"),
        (RolloutResult("COMPLETED", reward=float("nan")), "reward nan; expected a finite number"),
        (RolloutResult("COMPLETED", reward="1"), "returned reward '1'; expected a finite number"),
        (RolloutResult("COMPLETED", reward=10**400), "expected a finite number"),
    ],
)
def test_a_return_that_breaks_the_contract_is_an_error_that_names_the_class(returned, message):
    with pytest.raises(OsmosisValidationError) as caught:
        run(lambda ctx: returned)
    assert message in str(caught.value)


def test_a_numpy_reward_becomes_a_float():
    numpy = pytest.importorskip("numpy")
    result = run(lambda ctx: ctx.complete([], reward=numpy.float32(0.5)))
    assert (type(result.reward), result.reward) == (float, 0.5)


def test_a_run_that_is_not_async_is_named():
    class Sync(Agent):
        def run(self, ctx):
            return ctx.complete([])

    with pytest.raises(OsmosisValidationError, match=r"Sync.run is not async: it returned Rollout"):
        rollout(Sync(None), ScriptedModel([]))


def test_events_are_logged_where_the_runner_is_asked_to(tmp_path):
    def act(ctx):
        ctx.log_event("here")
        return ctx.complete([])

    async def main():
        asked = request(rollout_id="r")
        await run_rollout(Agent(act), asked, ModelLLM(ScriptedModel([])), debug_dir=tmp_path)

    asyncio.run(main())
    assert '"here"' in (tmp_path / "r.jsonl").read_text()


@pytest.mark.parametrize("name", [None, "", "  ", 7])
def test_an_agent_without_a_name_is_a_type_error_at_its_definition(name):
    with pytest.raises(TypeError, match="Nameless needs a class attribute `name`"):
        type("Nameless", (RolloutAgentLoop,), {} if name is None else {"name": name})


def test_a_base_class_needs_no_name_and_a_subclass_inherits_one():
    class Base(RolloutAgentLoop, ABC):
        def get_tools(self, request):
            return []

    class AnotherBase(RolloutAgentLoop):
        @abstractmethod
        def prompt(self): ...

    class Named(Base):
        name = "named"

        async def run(self, ctx):
            return ctx.complete([])

    class Further(Named):
        pass

    assert Further().name == "named"
    with pytest.raises(TypeError):
        AnotherBase()


def test_an_agent_must_have_run_and_tools():
    class OnlyRun(RolloutAgentLoop):
        name = "only-run"

        async def run(self, ctx):
            return ctx.complete([])

    with pytest.raises(TypeError, match="get_tools"):
        OnlyRun()


def test_fixed_tools_need_no_get_tools():
    class Fixed(RolloutAgentLoop):
        name = "fixed"

        def get_default_tools(self):
            return [{"type": "function", "function": {"name": "f"}}]

        async def run(self, ctx):
            return ctx.complete(ctx.tools)

    result = rollout(Fixed(), ScriptedModel([]))
    assert result.final_messages == Fixed().get_default_tools()
    assert Agent(None).get_default_tools() == []


def test_request_and_metrics_are_the_wires_models_themselves():
    kinds = rollout(
        Agent(
            lambda ctx: ctx.complete([{"request": type(ctx.request), "took": type(ctx.metrics())}])
        ),
        ScriptedModel([]),
    )
    assert kinds.final_messages == [{"request": RolloutRequest, "took": RolloutMetrics}]
    assert type(kinds.metrics) is RolloutMetrics
