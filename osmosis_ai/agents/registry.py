"""Agent loops by name, for programs that have several of them.

Any thread may use a registry. Knows nothing of how an agent is run.
"""

from __future__ import annotations

import threading

from .base import RolloutAgentLoop
from .errors import AgentLoopNotFoundError

__all__ = [
    "AgentLoopRegistry",
    "get_agent_loop",
    "list_agent_loops",
    "register_agent_loop",
    "unregister_agent_loop",
]


class AgentLoopRegistry:
    """Agent loops by their names, in the order in which they came."""

    def __init__(self) -> None:
        self._loops: dict[str, RolloutAgentLoop] = {}
        self._lock = threading.Lock()

    def register(self, agent_loop: RolloutAgentLoop) -> None:
        """Add an agent loop; ValueError when its name is taken."""
        with self._lock:
            if agent_loop.name in self._loops:
                raise ValueError(
                    f"an agent loop named {agent_loop.name!r} is already registered: unregister it "
                    f"first, or give this one another `name`"
                )
            self._loops[agent_loop.name] = agent_loop

    def unregister(self, name: str) -> bool:
        """Remove the agent loop of that name; return whether there was one."""
        with self._lock:
            return self._loops.pop(name, None) is not None

    def get(self, name: str) -> RolloutAgentLoop | None:
        """Return the agent loop of that name, or None."""
        with self._lock:
            return self._loops.get(name)

    def list_names(self) -> list[str]:
        """Return the names of all agent loops."""
        with self._lock:
            return list(self._loops)

    def clear(self) -> None:
        """Remove all agent loops."""
        with self._lock:
            self._loops.clear()


_REGISTRY = AgentLoopRegistry()


def register_agent_loop(agent_loop: RolloutAgentLoop) -> None:
    """Add an agent loop to the registry of this process; ValueError when its name is taken."""
    _REGISTRY.register(agent_loop)


def unregister_agent_loop(name: str) -> bool:
    """Remove an agent loop from the registry of this process; return whether it was there."""
    return _REGISTRY.unregister(name)


def get_agent_loop(name: str) -> RolloutAgentLoop:
    """Return the registered agent loop of that name; raise AgentLoopNotFoundError."""
    agent_loop = _REGISTRY.get(name)
    if agent_loop is None:
        raise AgentLoopNotFoundError(name, list_agent_loops())
    return agent_loop


def list_agent_loops() -> list[str]:
    """Return the names of all registered agent loops."""
    return _REGISTRY.list_names()
