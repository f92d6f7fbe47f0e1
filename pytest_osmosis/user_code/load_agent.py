"""From what `--osmosis-agent` and `--osmosis-grader` name to an agent and its grading.

What cannot be used is an `ImportingError` of one sentence. Tells kinds by what classes are called
and have: an agent loop is loaded without the rest of the SDK.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from osmosis_ai.loaded_modules import loaded_module

from .agent import CHAT, MCP, PROGRAM, Agent
from .agent_loop import LoopAgent
from .classify_agent import as_agent_loop, as_factory_loop, classify_agent, instantiated
from .import_object import (
    ImportingError,
    kind_of,
    load_module,
    load_object,
    names_file_alone,
    user_traceback,
)

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop

    from .workflow import Grading

AGENT = "--osmosis-agent"
GRADER = "--osmosis-grader"


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    """An agent, and the module that it came from, where a grader may be found."""

    agent: Agent
    module: ModuleType | None = None
    needs_scores: bool = False
    """It gives itself no reward: a grader or an eval function must score it."""
    grading: Grading | None = None
    """That of the backend that was named, or is in the file."""


def load_agent(
    spec: str,
    *,
    roots: Sequence[Path],
    withheld: Sequence[str] = (),
    named: object = None,
) -> LoadedAgent:
    """Return the agent that the option names; a program is started without `withheld` variables.

    `named` is the object itself, where there is one: `spec` then is its name in messages.
    """
    if named is not None:
        module = loaded_module(_home(named))
        return _loaded(named, spec, roots=roots, module=module)
    if spec == CHAT:
        return LoadedAgent(_chat(), needs_scores=True)
    if spec.startswith(PROGRAM):
        from .command import CommandAgent, parse_command

        argv = parse_command(spec, option=AGENT, cwd=roots[0])
        return LoadedAgent(CommandAgent(argv, cwd=roots[0], withheld=withheld))
    if spec.startswith(MCP):
        from .mcp_server import load_mcp_agent

        return LoadedAgent(LoopAgent(load_mcp_agent(spec, option=AGENT, roots=roots)))
    if names_file_alone(spec):
        spec = f"{spec.strip()}:{_only_agent(spec, roots)}"
    if spec.rstrip().endswith("()"):
        return LoadedAgent(LoopAgent(load_agent_loop(spec, option=AGENT, roots=roots)))
    named = load_object(spec, option=AGENT, roots=roots)
    return _loaded(named, spec, roots=roots)


def _chat() -> LoopAgent:
    from osmosis_ai.agents.base import FunctionAgent
    from osmosis_ai.agents.chat import chat

    agent = LoopAgent(FunctionAgent(chat))
    agent.reach -= {"turns"}  # it has one
    return agent


def name_of_object(named: Any) -> str:
    """Return `module:name` for an object, as far as it has these: it may not be found by them."""
    holder = named if hasattr(named, "__qualname__") else type(named)
    inner = getattr(named, "func", None)  # of a partial
    if inner is not None and not hasattr(named, "__qualname__"):
        return name_of_object(inner)
    return f"{holder.__module__}:{holder.__qualname__}"


def _loaded(
    named: Any,
    spec: str,
    *,
    roots: Sequence[Path],
    module: ModuleType | None = None,
) -> LoadedAgent:
    """Return what an object is; its config and grader are in `module`, or where `spec` is."""
    backend = _backend(named)
    if backend is not None:
        return _of_backend(backend, spec)
    if classify_agent(named) != "workflow":
        return LoadedAgent(LoopAgent(as_agent_loop(named, spec=spec, option=AGENT)))
    module = module or load_module(spec, option=AGENT, roots=roots)
    made = _made(named, module, spec=spec, option=AGENT, config_base="AgentWorkflowConfig")
    from .workflow import WorkflowAgent

    return LoadedAgent(WorkflowAgent(*made), module, needs_scores=True)


def _backend(named: Any) -> Any:
    """The backend itself, or that of a server of workflows; None for anything else."""
    if _is_instance(named, "LocalBackend"):
        return named
    return _backend(named.backend) if _is_instance(named, "RolloutServer") else None


def _of_backend(backend: Any, spec: str) -> LoadedAgent:
    """The workflow and the grader that a backend runs."""
    from .workflow import Grading, WorkflowAgent

    try:
        workflow, grader = backend.new_workflow(), backend.new_grader()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's constructors: what they raise
        raise ImportingError(
            f"{AGENT} {spec!r}: what its backend runs cannot be made\n{user_traceback(error)}"
        ) from None
    return LoadedAgent(
        WorkflowAgent(workflow, backend.new_workflow),
        needs_scores=True,
        grading=None if grader is None else Grading(grader, backend.new_grader),
    )


def load_agent_loop(spec: str, *, option: str, roots: Sequence[Path]) -> RolloutAgentLoop:
    """Return the agent loop that an option names; ImportingError says why there is none."""
    if spec.startswith(MCP):
        from .mcp_server import load_mcp_agent

        return load_mcp_agent(spec, option=option, roots=roots)
    name = spec.rstrip().removesuffix("()")
    made = as_agent_loop if name == spec.rstrip() else as_factory_loop
    return made(load_object(name, option=option, roots=roots), spec=spec, option=option)


def _only_agent(spec: str, roots: Sequence[Path]) -> str:
    """The name of the one agent that a file has: a backend, else what it defines, else imports.

    An instance counts for more than its class.
    """
    module = load_module(spec, option=AGENT, roots=roots)
    backends = {
        id(_backend(value)): name for name, value in vars(module).items() if _backend(value)
    }
    found = list(backends.values()) or _agents(module) or _functions(module)
    own = [name for name in found if _home(vars(module)[name]) == module.__name__]
    among = found if backends else own or found
    instances = [name for name in among if not inspect.isclass(vars(module)[name])]
    names = instances if len(instances) == 1 else sorted(among)
    if len(names) == 1:
        return names[0]
    if not names:
        raise ImportingError(
            f"{AGENT} {spec!r}: defines no agent loop, no workflow and no function; "
            f"name what is to run: {spec}:NAME"
        )
    raise ImportingError(
        f"{AGENT} {spec!r}: has several agents ({', '.join(names)}); name one: {spec}:{names[0]}"
    )


def _agents(module: ModuleType) -> list[str]:
    """The names of a module's agents, its own and those that it imports; each once."""
    found = {
        id(value): name
        for name, value in vars(module).items()
        if classify_agent(value) in ("loop", "workflow")
        and not _home(value).startswith("osmosis_ai.")
        and not (inspect.isclass(value) and inspect.isabstract(value))
    }
    return list(found.values())


def _functions(module: ModuleType) -> list[str]:
    """The names of the public functions that a module defines and that can be agents."""
    from osmosis_ai.agents.plain_callable import can_be_agent

    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and name[0] != "_"
        and can_be_agent(value)
    ]


def load_grading(
    named: str | None, loaded: LoadedAgent, *, agent: str, roots: Sequence[Path]
) -> Grading | None:
    """The named grader, else the one in the agent's module; None when there is none."""
    if named is not None:
        found = load_object(named, option=GRADER, roots=roots)
        if not _is_a(found, "Grader"):
            raise ImportingError(f"{GRADER} {named!r}: is {kind_of(found)}; expected a Grader")
        module = load_module(named, option=GRADER, roots=roots)
        from .workflow import Grading

        return Grading(*_made(found, module, spec=named, option=GRADER, config_base="GraderConfig"))
    if loaded.grading is not None or loaded.module is None:
        return loaded.grading
    found = _only(_graders(loaded.module), loaded.module, agent)
    if found is None:
        return None
    from .workflow import Grading

    return Grading(
        *_made(found, loaded.module, spec=agent, option=AGENT, config_base="GraderConfig")
    )


def _made(
    found: Any, module: ModuleType, *, spec: str, option: str, config_base: str
) -> tuple[Any, Callable[[], Any]]:
    """The instance, and what makes one for each rollout; one that was named is for all of them.

    The module's config, where it has one, is copied for each.
    """
    if not inspect.isclass(found):
        return found, lambda: found
    configs = {
        id(value): value for value in vars(module).values() if _is_instance(value, config_base)
    }
    given: dict[str, Any] = {}
    if len(configs) == 1 and "config" in inspect.signature(found).parameters:
        [given["config"]] = configs.values()
    first = instantiated(found, spec=spec, option=option, **given)
    return first, lambda: found(**copy.deepcopy(given))


def _graders(module: ModuleType) -> list[Any]:
    """What could grade: the module's own graders, else those that it imports."""
    found = {id(value): value for value in vars(module).values() if _is_concrete_grader(value)}
    own = [value for value in found.values() if _home(value) == module.__name__]
    return own or list(found.values())


def _only(graders: list[Any], module: ModuleType, agent: str) -> Any:
    """The one grader; an instance counts for more than the class that it was made of."""
    instances = [value for value in graders if not inspect.isclass(value)]
    if len(instances) == 1:
        return instances[0]
    if len(graders) > 1:
        names = [name for name, value in vars(module).items() if value in graders]
        raise ImportingError(
            f"{AGENT} {agent!r}: its module has several graders ({', '.join(sorted(names))}); "
            f"name one with {GRADER}"
        )
    return graders[0] if graders else None


def _is_concrete_grader(value: object) -> bool:
    if not _is_a(value, "Grader") or getattr(value, "__name__", "") == "Grader":
        return False
    return not (inspect.isclass(value) and inspect.isabstract(value))


def _is_instance(value: object, base: str) -> bool:
    return not inspect.isclass(value) and _is_a(value, base)


def _is_a(value: object, base: str) -> bool:
    """Whether a class, or the class of an instance, descends from the SDK's class of that name."""
    cls = value if inspect.isclass(value) else type(value)
    return any(
        parent.__name__ == base and parent.__module__.startswith("osmosis_ai.")
        for parent in cls.__mro__
    )


def _home(value: object) -> str:
    return str((value if inspect.isclass(value) else type(value)).__module__)
