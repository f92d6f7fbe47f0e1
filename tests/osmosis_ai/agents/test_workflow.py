from __future__ import annotations

import asyncio
import math

import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderConfig,
    GraderContext,
    OsmosisValidationError,
    RolloutContext,
    RolloutSample,
    get_rollout_context,
)
from osmosis_ai.rollout.grader import run_grader
from osmosis_ai.rollout.workflow import run_workflow

ANSWER = [{"role": "assistant", "content": "4"}]


class Workflow(AgentWorkflow):
    """A workflow that does what its prompt says."""

    def __init__(self, act, config=None):
        super().__init__(config)
        self.act = act

    async def run(self, ctx):
        return self.act(ctx)


def run(act, **fields):
    ctx = AgentWorkflowContext(prompt=[{"role": "user", "content": "2 + 2?"}], **fields)
    return asyncio.run(run_workflow(Workflow(act), ctx, RolloutContext(rollout_id="r")))


class Source:
    def __init__(self, messages):
        self.messages = messages

    async def get_sample(self):
        return RolloutSample(messages=self.messages, metrics={"turns": 1.0})


def register(messages):
    get_rollout_context().set_sample_source(Source(messages))


def test_a_workflow_may_return_its_messages():
    assert run(lambda ctx: [*ctx.prompt, *ANSWER]).messages == [
        {"role": "user", "content": "2 + 2?"},
        *ANSWER,
    ]


def test_a_workflow_may_return_an_output_with_metrics():
    sample = run(lambda ctx: AgentWorkflowOutput(messages=ANSWER, metrics={"turns": 2}))
    assert (sample.messages, sample.metrics) == (ANSWER, {"turns": 2.0})


def test_a_workflow_may_return_nothing_and_register_a_source():
    assert run(lambda ctx: register(ANSWER)).messages == ANSWER
    assert run(lambda ctx: None) is None


def test_an_output_without_messages_takes_them_from_the_source():
    def act(ctx):
        register(ANSWER)
        return AgentWorkflowOutput(metrics={"cost": 3.0})

    sample = run(act)
    assert (sample.messages, sample.metrics) == (ANSWER, {"turns": 1.0, "cost": 3.0})


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("4", "Workflow.run returned str; expected AgentWorkflowOutput, a list of messages, or"),
        (4, "Workflow.run returned int"),
        (["4"], "Workflow.run returned an output whose messages.0 is wrong"),
    ],
)
def test_any_other_return_is_named(returned, message):
    with pytest.raises(OsmosisValidationError) as caught:
        run(lambda ctx: returned)
    assert message in str(caught.value)


def test_numbers_that_are_not_finite_and_unknown_fields_are_refused():
    with pytest.raises(ValueError):
        AgentWorkflowOutput(metrics={"turns": math.nan})
    with pytest.raises(ValueError):
        AgentWorkflowOutput(message=[])

    def act(ctx):
        output = AgentWorkflowOutput(messages=[])
        output.metrics["late"] = math.inf
        return output

    with pytest.raises(OsmosisValidationError, match=r"metrics.late is wrong"):
        run(act)


def test_what_a_workflow_raises_propagates_and_its_context_ends_with_it():
    def act(ctx):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(act)
    assert get_rollout_context() is None


def test_a_workflow_that_is_not_async_is_named():
    class Sync(AgentWorkflow):
        def run(self, ctx):
            return []

    with pytest.raises(OsmosisValidationError, match=r"Sync.run is not async"):
        asyncio.run(
            run_workflow(Sync(), AgentWorkflowContext(prompt=[]), RolloutContext(rollout_id="r"))
        )


def test_a_hundred_concurrent_workflows_yield_their_own_samples():
    class Slow(AgentWorkflow):
        async def run(self, ctx):
            await asyncio.sleep(0)
            register([{"role": "assistant", "content": get_rollout_context().rollout_id}])
            await asyncio.sleep(0)

    async def main():
        ambients = [RolloutContext(rollout_id=f"r{number}") for number in range(100)]
        ctx = AgentWorkflowContext(prompt=[])
        return await asyncio.gather(*(run_workflow(Slow(), ctx, ambient) for ambient in ambients))

    samples = asyncio.run(main())
    assert [sample.messages[0]["content"] for sample in samples] == [f"r{n}" for n in range(100)]


@pytest.mark.parametrize("config", [AgentWorkflowConfig, GraderConfig])
def test_configs_keep_further_keys(config):
    made = config(name="x", concurrency={"max_concurrent": 4, "burst": 2}, model_path="m")
    assert (made.name, made.concurrency.max_concurrent, made.model_path) == ("x", 4, "m")
    assert made.description is None
    with pytest.raises(ValueError):
        config(concurrency={"max_concurrent": 0})


def test_workflow_and_grader_keep_the_config_that_they_are_given():
    config = AgentWorkflowConfig(name="x")
    assert Workflow(None, config).config is config
    assert Workflow(None).config is None


class Grading(Grader):
    def __init__(self, act):
        super().__init__()
        self.act = act

    async def grade(self, ctx):
        return self.act(ctx)


def grade(act, sample=None, **fields):
    ctx = GraderContext(
        sample=RolloutSample(messages=ANSWER) if sample is None else sample, **fields
    )
    return asyncio.run(run_grader(Grading(act), ctx))


def test_a_grader_rewards_the_sample():
    def act(ctx):
        ctx.set_reward(1.0 if ctx.sample.messages[-1]["content"] == ctx.label else 0.0)

    assert grade(act, label="4") == 1.0
    assert grade(act, label="5") == 0.0


def test_a_grader_that_sets_no_reward_gives_none():
    assert grade(lambda ctx: None) is None
    assert asyncio.run(run_grader(Grading(lambda ctx: None), GraderContext())) is None


@pytest.mark.parametrize("reward", [math.nan, math.inf, "1", None, [1], 10**400])
def test_a_reward_must_be_a_finite_number(reward):
    with pytest.raises(ValueError, match="reward must be a finite number"):
        grade(lambda ctx: ctx.set_reward(reward))
    if reward is not None:
        with pytest.raises(ValueError):
            RolloutSample(reward=reward)


@pytest.mark.parametrize("reward", [1, True, 0.5])
def test_whole_numbers_and_bools_become_floats(reward):
    given = grade(lambda ctx: ctx.set_reward(reward))
    assert (type(given), given) == (float, float(reward))


def test_without_a_sample_there_is_nothing_to_reward():
    with pytest.raises(ValueError, match="there is no sample to reward"):
        GraderContext().set_reward(1.0)


def test_a_grader_that_is_not_async_is_named():
    class Sync(Grader):
        def grade(self, ctx):
            return None

    with pytest.raises(OsmosisValidationError, match=r"Sync.grade is not async"):
        asyncio.run(run_grader(Sync(), GraderContext()))


def test_a_sample_keeps_fields_of_its_own():
    sample = RolloutSample(messages=ANSWER, id="a")
    assert (sample.id, sample.remove_sample, sample.extra_fields) == ("a", False, {})
    assert RolloutSample().trajectory_messages is None
