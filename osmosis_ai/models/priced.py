"""A model whose price the user has given. Knows neither endpoints nor options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .base import ChatCompletion, ChatModel

_NO_PARAMS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A `ChatModel` with a cost of each answer, where the endpoint reports none."""

    model: ChatModel
    per_mtok: tuple[float, float]
    """Dollars per million tokens of prompts and of completions."""

    @property
    def name(self) -> str:
        """The model as it is evaluated."""
        return self.model.name

    @property
    def endpoint(self) -> str:
        """Printable `host:port` or provider."""
        return self.model.endpoint

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
    ) -> ChatCompletion:
        """Return the model's answer; its cost stays unknown where its tokens are."""
        answer = await self.model.complete(messages, tools=tools, params=params)
        prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
        if answer.cost_usd is None and prompt is not None and completion is not None:
            answer.cost_usd = (prompt * self.per_mtok[0] + completion * self.per_mtok[1]) / 1e6
        return answer

    async def aclose(self) -> None:
        """Close every connection."""
        await self.model.aclose()
