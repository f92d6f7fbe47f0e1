"""A model whose price the user has given. Knows neither endpoints nor options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import NO_PARAMS, ChatCompletion, ChatModel, WrappedModel


class PricedModel(WrappedModel):
    """A `ChatModel` with a cost of each answer, where the endpoint reports none."""

    def __init__(self, model: ChatModel, per_mtok: tuple[float, float]) -> None:
        """`per_mtok`: dollars per million tokens of prompts and of completions."""
        super().__init__(model)
        self._per_mtok = per_mtok

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
    ) -> ChatCompletion:
        """Return the model's answer; its cost stays unknown where its tokens are."""
        answer = await self._model.complete(messages, tools=tools, params=params)
        prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
        if answer.cost_usd is None and prompt is not None and completion is not None:
            prices = self._per_mtok
            answer.cost_usd = (prompt * prices[0] + completion * prices[1]) / 1e6
        return answer
