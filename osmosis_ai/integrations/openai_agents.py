"""The OpenAI Agents SDK on a rollout.

OsmosisRolloutModel     the rollout's model, for `Agent(model=...)`
OsmosisAgent            an `Agent` that has it unless another one is named
OsmosisMemorySession    a session in memory whose conversation is the rollout's sample
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

try:
    from agents import Agent, Model, OpenAIChatCompletionsModel
    from agents.memory import SessionABC
    from agents.models.chatcmpl_converter import Converter
except ModuleNotFoundError as error:
    from .rollout_client import missing_library

    raise missing_library(
        error, "The integration of the OpenAI Agents SDK", "openai-agents"
    ) from None

from ..agents.context import get_rollout_context
from ..agents.schemas import RolloutSample
from .rollout_client import MODEL_NAME, rollout_client

__all__ = [
    "OsmosisAgent",
    "OsmosisLitellmModel",
    "OsmosisMemorySession",
    "OsmosisRolloutModel",
    "SessionSampleSource",
]

logger = logging.getLogger(__name__)


class OsmosisRolloutModel(Model):
    """The model of the running rollout.

    It is found at each call, so one instance, in a config for example, serves every rollout.
    Keywords go to `OpenAIChatCompletionsModel`.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the model's answer."""
        async with rollout_client(type(self).__name__) as client:
            return await self._over(client).get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events of the model's answer."""
        async with rollout_client(type(self).__name__) as client:
            async for event in self._over(client).stream_response(*args, **kwargs):
                yield event

    def _over(self, client: Any) -> Any:
        return OpenAIChatCompletionsModel(model=MODEL_NAME, openai_client=client, **self.options)


OsmosisLitellmModel = OsmosisRolloutModel
"""The same model, by the name that workspaces have for one bound to its rollout."""


class OsmosisAgent(Agent):
    """An `Agent` whose model is that of the rollout unless another one is named."""

    def __init__(self, *args: Any, model: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, model=model or OsmosisRolloutModel(), **kwargs)


class OsmosisMemorySession(SessionABC):
    """A session in memory; made in a rollout, its conversation is the rollout's sample.

    Make one in `AgentWorkflow.run` and pass it to `Runner.run(..., session=session)`. Outside of
    a rollout it is a session like any other.
    """

    def __init__(self, name: str | None = None) -> None:
        self.session_id = name or uuid.uuid4().hex
        self.items: list[Any] = []
        self._rollout = get_rollout_context()
        if self._rollout is not None:
            self._rollout.set_sample_source(SessionSampleSource(self, name=name))

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the conversation, or its last `limit` items."""
        self._check_rollout()
        return list(self.items if limit is None else self.items[-limit:] if limit > 0 else ())

    async def add_items(self, items: list[Any]) -> None:
        """Append to the conversation."""
        self._check_rollout()
        self.items.extend(items)

    async def pop_item(self) -> Any:
        """Remove and return the last item; None when there is none."""
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        """Forget the conversation."""
        self.items.clear()

    def _check_rollout(self) -> None:
        running = get_rollout_context()
        if running is not None and running is not self._rollout:
            raise RuntimeError(
                "this OsmosisMemorySession belongs to another rollout: make one in each `run`"
            )


class SessionSampleSource:
    """The sample of a rollout from a session of the Agents SDK.

    Its `messages` are the session's items; `trajectory_messages` the same as chat completions,
    where the SDK can say it so.
    """

    def __init__(self, session: Any, *, name: str | None = None) -> None:
        self._session = session
        self._name = name

    async def get_sample(self) -> RolloutSample:
        """Return the conversation so far."""
        items = await self._session.get_items()
        messages = [dict(item) for item in items]
        sample = RolloutSample(messages=messages, trajectory_messages=_as_chat(items))
        return sample if self._name is None else sample.model_copy(update={"id": self._name})


def _as_chat(items: Sequence[Any]) -> list[dict[str, Any]] | None:
    try:
        return [dict(message) for message in Converter.items_to_messages(list(items))]
    except Exception as error:  # noqa: BLE001  items of hosted tools have no such form
        logger.warning("the session cannot be said as chat messages: %s", error)
        return None
