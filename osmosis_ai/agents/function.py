"""An `async def agent(ctx)` function as an agent loop.

Knows what such a function must take; `runner` checks what it returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from .base import RolloutAgentLoop

if TYPE_CHECKING:
    from .context import RolloutContext
    from .request import RolloutRequest
    from .results import RolloutResult

AgentFunction = Callable[["RolloutContext"], Awaitable["RolloutResult"]]
"""It gives the model its tools by itself: `ctx.chat(messages, tools=[...])`."""


class FunctionAgent(RolloutAgentLoop):
    """The agent loop that calls an async function for each rollout."""

    run: Any = None
    """The function itself."""

    def __init__(self, function: AgentFunction) -> None:
        """Raise TypeError for a function that cannot be called with the context alone."""
        if problem := wrong_parameters(function):
            raise TypeError(problem)
        self.run = function

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's own name."""
        return str(getattr(self.run, "__name__", "agent"))

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """Return no tools: the function names them where it asks the model."""
        return []


def is_agent_function(agent: object) -> TypeGuard[AgentFunction]:
    """Return whether an object is an async function, of whatever arguments."""
    return inspect.iscoroutinefunction(agent)


def as_agent(agent: RolloutAgentLoop | AgentFunction) -> RolloutAgentLoop:
    """Return an agent loop as it is, and an async function as an agent loop."""
    if isinstance(agent, RolloutAgentLoop) or not is_agent_function(agent):
        return agent  # type: ignore[return-value]
    return FunctionAgent(agent)


def owner_of_run(agent: RolloutAgentLoop) -> str:
    """Return the name under which messages speak of the code that runs a rollout."""
    return agent.name if isinstance(agent, FunctionAgent) else f"{type(agent).__name__}.run"


def wrong_parameters(function: AgentFunction) -> str | None:
    """Return why a function cannot be called with the context alone, or None."""
    try:
        inspect.signature(function).bind(object())
    except TypeError as error:
        name = getattr(function, "__name__", "agent")
        return f"the function {name} is no agent: {error}; expected `async def {name}(ctx)`"
    except ValueError:  # it has no signature that can be read
        return None
    return None
