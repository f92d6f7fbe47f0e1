"""What the agent option names, classified and made ready: an agent loop, a workflow, a function.

Tells by names and by what an object has: nothing of the SDK is imported for it. Does not know how
an agent is run.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Container
from typing import TYPE_CHECKING, Any, Literal, cast

from .import_object import ImportingError, kind_of, user_traceback

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop

AgentKind = Literal["loop", "workflow", "function"]
_EXPECTED = "a function, another callable, or a RolloutAgentLoop as an instance or a class"


def classify_agent(agent: object) -> AgentKind | None:
    """Whether an object, or a class's instances, are agents, and of which kind; None for neither.

    A callable is one, of whatever arguments.
    """
    cls = agent if inspect.isclass(agent) else type(agent)
    bases = {base.__name__ for base in cls.__mro__}
    if "RolloutAgentLoop" in bases:
        return "loop"
    if "AgentWorkflow" in bases:
        return "workflow"
    has_both = callable(getattr(cls, "run", None)) and callable(getattr(cls, "get_tools", None))
    if has_both:
        return "loop"
    return "function" if any("__call__" in vars(base) for base in cls.__mro__) else None


def as_agent_loop(agent: object, *, spec: str, option: str) -> RolloutAgentLoop:
    """The agent loop itself, or one made from a callable or a class that needs no arguments.

    A class whose instances are called is made anew for each rollout.
    """
    kind = classify_agent(agent)
    if kind == "workflow":
        raise ImportingError(f"{option} {spec!r}: {workflow_told(agent)}")
    if kind is None:
        raise ImportingError(f"{option} {spec!r}: is {kind_of(agent)}; expected {_EXPECTED}")
    if kind == "function":
        return _of_function(agent, spec=spec, option=option)
    if inspect.isclass(agent):
        agent = instantiated(agent, spec=spec, option=option)
    return cast("RolloutAgentLoop", agent)


def as_factory_loop(make: Any, *, spec: str, option: str) -> RolloutAgentLoop:
    """The agent loop that calls a function for each rollout, and runs what it made."""
    from osmosis_ai.agents.factory import FactoryAgent

    if not callable(make):
        raise ImportingError(f"{option} {spec!r}: is {kind_of(make)}, which cannot be called")

    prefix = f"{option} {spec!r}"

    def as_loop(made: Any) -> RolloutAgentLoop:
        if classify_agent(made) is None:
            raise TypeError(f"{prefix}: made {kind_of(made)}; expected {_EXPECTED}")
        try:
            return as_agent_loop(made, spec=spec, option=option)
        except ImportingError as error:
            raise TypeError(str(error)) from None

    try:
        agent = FactoryAgent(make, as_loop)
    except TypeError as error:
        raise ImportingError(f"{option} {spec!r}: {error}") from None
    if agent.ours:
        return agent
    try:
        first = make()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's function: its error is the message
        raise ImportingError(
            f"{option} {spec!r}: {agent.name}() made no agent\n{user_traceback(error)}"
        ) from None
    try:
        agent.take_after(as_loop(first))
    except TypeError as error:
        raise ImportingError(str(error)) from None
    return agent


def workflow_told(agent: object) -> str:
    """What to do with a workflow where an agent loop is expected."""
    cls = agent if inspect.isclass(agent) else type(agent)
    return (
        f"{cls.__name__} is a workflow: evaluate it with `osmosis eval`, serve it with "
        "create_rollout_server; expected a RolloutAgentLoop here"
    )


def _of_function(function: Any, *, spec: str, option: str) -> RolloutAgentLoop:
    from osmosis_ai.agents.base import FunctionAgent
    from osmosis_ai.agents.plain_callable import OURS, CallableAgent, input_kind

    if inspect.isclass(function):
        _check_makeable(function, OURS, prefix=f"{option} {spec!r}")
    try:
        takes_context = input_kind(function) == "context"
        return FunctionAgent(function) if takes_context else CallableAgent(function)
    except TypeError as error:
        raise ImportingError(f"{option} {spec!r}: {error}") from None


def instantiated(cls: type, *, spec: str, option: str, **arguments: Any) -> Any:
    """An instance made from copies of `arguments`; ImportingError names what it needs besides."""
    prefix = f"{option} {spec!r}"
    _check_makeable(cls, arguments, prefix=prefix)
    try:
        return cls(**copy.deepcopy(arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's constructor: its error is the message
        raise ImportingError(
            f"{prefix}: {cls.__name__}() cannot be made\n{user_traceback(error)}"
        ) from None


def _check_makeable(cls: type, given: Container[str], *, prefix: str) -> None:
    """Raise ImportingError for a class that cannot be made with some arguments."""
    if abstract := sorted(getattr(cls, "__abstractmethods__", ())):
        raise ImportingError(
            f"{prefix}: the class {cls.__name__} does not define {_joined(abstract)}"
        )
    if required := [name for name in _required(cls) if name not in given]:
        raise ImportingError(
            f"{prefix}: the class {cls.__name__} needs {_joined(required)} to be made; "
            f"make an instance in the module and name that, or give {_them(required)} a default"
        )


def _required(cls: type) -> list[str]:
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in optional]


def _joined(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _them(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
