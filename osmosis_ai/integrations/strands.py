"""Strands Agents on a rollout.

OsmosisRolloutModel      the rollout's model, for `Agent(model=...)`
OsmosisStrandsAgent      an `Agent` that has it unless another one is named, and whose
                         conversation is the rollout's sample
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

try:
    from strands import Agent
    from strands.models.model import Model
    from strands.models.openai import OpenAIModel
except ModuleNotFoundError as error:
    from .rollout_client import missing_library

    who = "The integration of Strands Agents"
    raise missing_library(error, who, "strands-agents[openai]") from None

from ..agents.context import get_rollout_context
from ..agents.schemas import RolloutSample
from .rollout_client import MODEL_NAME, rollout_client

__all__ = ["OsmosisRolloutModel", "OsmosisStrandsAgent", "StrandsAgentSampleSource"]


class OsmosisRolloutModel(Model):
    """The model of the running rollout, with sampling options as `params`.

    It is found at each call, so one instance, in a config for example, serves every rollout.
    """

    def __init__(self, *, params: Mapping[str, Any] | None = None, **config: Any) -> None:
        self.config = {**config, "model_id": MODEL_NAME, "params": dict(params or {})}

    def update_config(self, **model_config: Any) -> None:
        """Change sampling options; the model's name stays the rollout's."""
        self.config = {**self.config, **model_config, "model_id": MODEL_NAME}

    def get_config(self) -> Any:
        """Return the options."""
        return self.config

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events of the model's answer."""
        async with rollout_client(type(self).__name__) as client:
            model = OpenAIModel(client=client, **self.config)
            async for event in model.stream(messages, *args, **kwargs):
                yield event

    async def structured_output(
        self, output_model: Any, prompt: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Yield the events of an answer in the form of a pydantic model."""
        async with rollout_client(type(self).__name__) as client:
            model = OpenAIModel(client=client, **self.config)
            async for event in model.structured_output(output_model, prompt, *args, **kwargs):
                yield event


class OsmosisStrandsAgent(Agent):
    """An `Agent` on the rollout's model whose conversation is the rollout's sample.

    `messages` may be those of `AgentWorkflowContext.prompt`: system messages among them become
    the system prompt. With another model it is an `Agent` like any other.
    """

    def __init__(
        self,
        *args: Any,
        model: Any = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        chosen = args[0] if args else model or OsmosisRolloutModel()
        system, history = _split(messages or ())
        if system and kwargs.get("system_prompt") is None:
            kwargs["system_prompt"] = system
        super().__init__(chosen, history, *args[1:], **kwargs)
        rollout = get_rollout_context()
        if rollout is not None and isinstance(chosen, OsmosisRolloutModel):
            rollout.set_sample_source(StrandsAgentSampleSource(self))


class StrandsAgentSampleSource:
    """The sample of a rollout from the messages of a Strands agent.

    Its `messages` are the agent's own; `trajectory_messages` the same as chat completions.
    """

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def get_sample(self) -> RolloutSample:
        """Return the conversation so far."""
        messages = list(self._agent.messages)
        chat = OpenAIModel.format_request_messages(messages, self._agent.system_prompt)
        sample = RolloutSample(messages=messages, trajectory_messages=chat)
        return sample.model_copy(update={"id": self._agent.name})


def _split(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Any]]:
    """Return the text of system messages, and the others in Strands' form."""
    system = [str(each["content"]) for each in messages if each.get("role") == "system"]
    rest = [_as_blocks(each) for each in messages if each.get("role") != "system"]
    return "\n\n".join(system), rest


def _as_blocks(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"text": content}]}
    return dict(message)
