"""`RolloutAgentLoop`: what an agent implements to be evaluated and trained.

Knows nothing of how it is run; `osmosis_ai.agents.runner` does that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

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
    found = "none" if name is None else repr(name)
    raise TypeError(
        f"{cls.__name__} needs a class attribute `name`, a non-empty string (found {found}): "
        f'add `name = "my_agent"` to the class'
    )
