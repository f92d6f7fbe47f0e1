"""What an isolated agent uses of the process: each call is made in the main loop.

See `osmosis_ai.running.isolation` for which agents are isolated.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from osmosis_ai.models.base import NO_PARAMS, WrappedModel

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatCompletion, ChatModel
    from osmosis_ai.running.loop_call import RunInMainLoop

    from ..user_code.agent import RunSync

T = TypeVar("T")


class LoopProxyCalls:
    """`RunSync` whose calls are those of the main loop."""

    def __init__(self, run_sync: RunSync, run_in_main_loop: RunInMainLoop) -> None:
        self._run_sync = run_sync
        self._run_in_main_loop = run_in_main_loop

    def __call__(self, call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        """Make a call as one of the main loop."""
        return self._run_in_main_loop(_awaited(lambda: self._run_sync(call, within_s)))


class LoopProxyModel(WrappedModel):
    """`ChatModel` whose calls are made in the main loop."""

    def __init__(self, model: ChatModel, run_in_main_loop: RunInMainLoop) -> None:
        super().__init__(model)
        self._run_in_main_loop = run_in_main_loop

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
    ) -> ChatCompletion:
        """Ask the model."""
        return await self._run_in_main_loop(
            _awaited(lambda: self._model.complete(messages, tools=tools, params=params))
        )

    async def aclose(self) -> None:
        """Close the model."""
        await self._run_in_main_loop(_awaited(self._model.aclose))


async def _awaited(start: Callable[[], Awaitable[T]]) -> T:
    return await start()
