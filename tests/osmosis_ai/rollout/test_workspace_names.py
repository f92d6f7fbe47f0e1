"""The import paths that workspaces of osmosis-ai 0.3 use, and the names that were renamed."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from osmosis_ai import deprecation, rollout
from osmosis_ai.rollout import GraderContext, RolloutContext, RolloutSample
from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.types import AgentWorkflowConfig, GraderConfig


def test_a_config_keeps_values_of_any_type_and_checks_what_is_assigned():
    class Tool:
        pass

    class Config(AgentWorkflowConfig):
        name: str = "with a tool"
        tool: Tool

    class Workflow(AgentWorkflow[Config]):
        async def run(self, ctx: Any) -> None: ...

    tool = Tool()
    config = Config(tool=tool, further=1)
    workflow = Workflow(config)
    assert workflow.config is not None
    assert (workflow.config.tool, config.model_extra) == (tool, {"further": 1})
    with pytest.raises(ValueError, match="name"):
        config.name = 5  # type: ignore[assignment]
    assert GraderConfig(name="g", further=2).model_extra == {"further": 2}


class Source:
    async def get_sample(self) -> RolloutSample:
        return RolloutSample(messages=[{"role": "assistant", "content": "4"}])


def old_sample_source() -> Any:
    ctx = RolloutContext(rollout_id="r")
    ctx.register_sample_source("multiply", Source())
    return asyncio.run(ctx.get_sample())


def old_samples() -> Any:
    ctx = RolloutContext(rollout_id="r")
    ctx.set_sample_source(Source())
    return asyncio.run(ctx.get_samples())["sample"]


def old_reward() -> Any:
    sample = RolloutSample().model_copy(update={"id": "multiply"})
    ctx = GraderContext(sample=sample)
    with pytest.raises(ValueError, match="no sample 'other'"):
        ctx.set_sample_reward("other", 1.0)
    ctx.set_sample_reward("multiply", 1.0)
    return sample if sample.reward == 1.0 else None


OLD: dict[str, tuple[Callable[[], Any], str]] = {
    "register_sample_source": (old_sample_source, r"call set_sample_source\(source\)"),
    "get_samples": (old_samples, r"await get_sample\(\)"),
    "a grader's get_samples": (
        lambda: GraderContext(sample=RolloutSample()).get_samples(), "one sample, ctx.sample"
    ),
    "set_sample_reward": (old_reward, r"call ctx.set_reward\(reward\)"),
    "create_rollout_server": (
        lambda: rollout.create_rollout_server,
        "from osmosis_ai.rollout.server import create_rollout_server",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_a_renamed_name_works_and_warns_once_naming_the_new_one(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    use, message = OLD[name]
    monkeypatch.setattr(deprecation, "_warned", set())
    with pytest.warns(DeprecationWarning, match=message) as seen:
        assert use()
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert use()


@pytest.mark.parametrize(
    ("module", "library", "requirement"),
    [
        ("openai_agents", "agents", "openai-agents"),
        ("strands", "strands", "strands-agents[openai]"),
    ],
)
def test_an_integration_without_its_library_says_what_to_install(
    module: str, library: str, requirement: str, monkeypatch: pytest.MonkeyPatch
):
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == library:
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(f"osmosis_ai.rollout.integrations.agents.{module}")
    assert f"needs {library!r}" in str(raised.value)
    assert str(raised.value).endswith(f"pip install '{requirement}'")
