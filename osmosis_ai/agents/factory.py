"""Agents that a function makes anew for each rollout: `--osmosis-agent "module:make()"`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .base import RolloutAgentLoop
from .errors import UnusableReturn
from .plain_callable import (
    OURS,
    CallableAgent,
    Takes,
    check_ours,
    given_model,
    is_async_callable,
    name_of,
)
from .runner import begin, checked

if TYPE_CHECKING:
    from .context import RolloutContext
    from .request import RolloutRequest
    from .results import RolloutResult


class FactoryAgent(RolloutAgentLoop):
    """The agent loop that runs what a function makes.

    One that takes the evaluated model makes functions of the row's prompt, messages or row.
    """

    name = "agent"

    def __init__(
        self, make: Callable[..., Any], as_loop: Callable[[Any], RolloutAgentLoop]
    ) -> None:
        """`as_loop` makes an agent loop of what was made; raises TypeError for what is none."""
        self.name = name_of(make)
        self._make, self._as_loop = make, as_loop
        if inspect.isclass(make):
            raise TypeError(f"{self.name} is a class, made anew for each run: name it without ()")
        if is_async_callable(make):
            raise TypeError(f"{self.name} is `async def`: make the agent in a plain function")
        parameters = inspect.signature(make).parameters.values()
        optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        named = [each for each in parameters if each.kind not in optional]
        self._made_with = tuple(each.name for each in named if each.name in OURS)
        needed = [
            each.name for each in named if each.default is each.empty and each.name not in OURS
        ]
        if needed:
            raise TypeError(
                f"{self.name} needs {', '.join(needed)}: a function that makes an agent takes "
                "nothing, or model, base_url and api_key"
            )
        check_ours(make, self._made_with)
        self.ours = frozenset(self._made_with)
        self._first: RolloutAgentLoop | None = None
        self.asks_model = "base_url" in self.ours
        self.needs_model = any(each.default is each.empty for each in named if each.name in OURS)
        self.sees_system_prompt = True
        self.takes: Takes = "question"

    def take_after(self, first: RolloutAgentLoop) -> None:
        """Be as the agents are that a function without parameters makes: `first` is one."""
        self._first = first
        self.asks_model = first.asks_model
        if isinstance(first, CallableAgent):
            self.ours, self.needs_model = first.ours, first.needs_model
            self.sees_system_prompt, self.takes = first.sees_system_prompt, first.takes
        else:
            del self.ours  # it is no callable's

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """Return the tools of the agents, where they name any."""
        return [] if self._first is None else self._first.get_tools(request)

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Make an agent, in a thread, and run it."""
        from ..running.thread_calls import run_in_thread  # brings asyncio

        given = given_model(ctx, self._made_with)
        made = await (ctx.run_sync or run_in_thread)(functools.partial(self._make, **given))
        try:
            loop = self._as_loop(made)
        except TypeError as error:
            raise UnusableReturn(str(error)) from None
        if self._made_with and not isinstance(loop, CallableAgent):
            raise UnusableReturn(
                f"{self.name} takes {', '.join(self._made_with)}, and made an agent that asks the "
                "model by its context: leave one of the two out"
            )
        return checked(loop, await begin(loop, ctx))
