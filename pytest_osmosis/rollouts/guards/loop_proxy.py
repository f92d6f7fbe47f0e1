"""A run's services for an agent that was moved out of the event loop that they belong to.

Each call goes home to that loop, where the window, the connections and the totals are. Knows the
services by their signatures alone.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ...user_code.agent import Services

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import ChatCompletion, ChatModel

    from .isolation import Home

T = TypeVar("T")
_NO_PARAMS: Mapping[str, Any] = {}


def reached_from(home: Home, services: Services) -> Services:
    """The same services, to be used from another event loop."""

    async def model() -> ChatModel:
        return _FarModel(await home(_awaited(services.model)), home)

    async def bridge() -> Bridge:
        return await home(_awaited(services.bridge))

    def run_sync(call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        return home(_awaited(lambda: services.run_sync(call, within_s)))

    return replace(services, model=model, bridge=bridge, run_sync=run_sync)


async def _awaited(start: Callable[[], Awaitable[T]]) -> T:
    return await start()


class _FarModel:
    """`ChatModel` whose calls are made in the loop that opened it."""

    def __init__(self, model: ChatModel, home: Home) -> None:
        self._model = model
        self._home = home

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def endpoint(self) -> str:
        return self._model.endpoint

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = _NO_PARAMS,
    ) -> ChatCompletion:
        return await self._home(
            _awaited(lambda: self._model.complete(messages, tools=tools, params=params))
        )

    async def aclose(self) -> None:
        await self._home(_awaited(self._model.aclose))
