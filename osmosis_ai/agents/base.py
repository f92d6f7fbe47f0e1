"""`RolloutAgentLoop`: what an agent implements to be evaluated and trained; a function as one.

Knows nothing of how it is run; `osmosis_ai.agents.runner` does that.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from .context import RolloutContext
from .results import RolloutResult

if TYPE_CHECKING:
    from .request import RolloutRequest

__all__ = ["RolloutAgentLoop", "RolloutContext", "RolloutResult"]


class RolloutAgentLoop(ABC):
    """An agent: its name, its tools, and the loop that talks to the model.

    A subclass has a `name`, an `async def run(self, ctx)`, and either `get_tools(request)` or, when
    its tools are the same for every request, `get_default_tools()`. A base class that is
    not an agent itself lists `ABC` among its bases and needs no name.
    """

    name: str
    asks_model = True
    """Whether it asks the evaluated, or trained, model; a plain callable asks its own."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "get_default_tools" in cls.__dict__ and "get_tools" not in cls.__dict__:
            cls.get_tools = _tools_for_every_request  # type: ignore[method-assign]
        if not _is_base_class(cls):
            _check_name(cls)

    @abstractmethod
    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """The tools of this rollout: `OpenAIFunctionToolSchema`s, or dicts of that form."""

    def get_default_tools(self) -> list[Any]:
        """Return the tools when no request is at hand; what an agent with fixed tools overrides."""
        return []

    @abstractmethod
    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Run one rollout; return `ctx.complete(messages)` or `ctx.error(message)`."""


def _tools_for_every_request(self: RolloutAgentLoop, request: RolloutRequest) -> list[Any]:
    return self.get_default_tools()


def _is_base_class(cls: type) -> bool:
    own = cls.__dict__.values()
    return ABC in cls.__bases__ or any(
        getattr(value, "__isabstractmethod__", False) for value in own
    )


def _check_name(cls: type[RolloutAgentLoop]) -> None:
    name = getattr(cls, "name", None)
    if isinstance(name, property) or (isinstance(name, str) and name.strip()):
        return
    shown = "none" if name is None else repr(name)
    raise TypeError(
        f"{cls.__name__} needs a class attribute `name`, a non-empty string (found {shown}): "
        f'add `name = "my_agent"` to the class'
    )


AgentFunction = Callable[["RolloutContext"], Awaitable["RolloutResult"]]
"""It gives the model its tools by itself: `ctx.chat(messages, tools=[...])`."""


class FunctionAgent(RolloutAgentLoop):
    """The agent loop that calls an async function for each rollout."""

    name = "agent"
    run: Any = None
    """The function itself; of a class, the call of an instance that is made for the rollout."""

    def __init__(self, function: AgentFunction) -> None:
        """Raise TypeError for a function that cannot be called with the context alone."""
        self.name = str(getattr(function, "__name__", "agent"))
        self.run = function
        if inspect.isclass(function):
            self.run = functools.partial(_call_new, function)
        elif problem := wrong_parameters(function):
            raise TypeError(problem)

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """Return no tools: the function names them where it asks the model."""
        return []


async def _call_new(cls: type, ctx: RolloutContext) -> Any:
    return await cls()(ctx)


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
