"""`LocalBackend`: a workflow with its grader, as `create_rollout_server` takes them.

Runs nothing itself: see `rollouts`.
"""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

from ..agents.grader import Grader, GraderConfig
from ..agents.workflow import AgentWorkflow, AgentWorkflowConfig

__all__ = ["ExecutionBackend", "LocalBackend"]

WITHOUT_LIMIT = 100
"""Rollouts at once where the workflow's config names no limit."""


class ExecutionBackend:
    """What `create_rollout_server` takes, as workspaces annotate it: a `LocalBackend`."""


class LocalBackend(ExecutionBackend):
    """A workflow and its grader, which run in a thread of this process.

    Each is a class, or a text `package.module:Class`; so are their configs, as instances.
    """

    def __init__(
        self,
        *,
        workflow: type[AgentWorkflow[Any]] | str,
        workflow_config: AgentWorkflowConfig | str | None = None,
        grader: type[Grader] | str | None = None,
        grader_config: GraderConfig | str | None = None,
    ) -> None:
        self.workflow_cls: type[AgentWorkflow[Any]] = _a_class("workflow", workflow, AgentWorkflow)
        self.workflow_config: AgentWorkflowConfig | None = _resolved(workflow_config)
        self.grader_cls: type[Grader] | None = (
            None if grader is None else _a_class("grader", grader, Grader)
        )
        self.grader_config: GraderConfig | None = _resolved(grader_config)

    def __repr__(self) -> str:
        return f"<LocalBackend of {self.workflow_cls.__name__}>"

    @property
    def max_concurrency(self) -> int:
        """How many rollouts run at once."""
        concurrency = getattr(self.workflow_config, "concurrency", None)
        return getattr(concurrency, "max_concurrent", None) or WITHOUT_LIMIT

    def new_workflow(self) -> AgentWorkflow[Any]:
        """Return a workflow of its own for a rollout, with its own copy of the config."""
        return self.workflow_cls(copy.deepcopy(self.workflow_config))

    def new_grader(self) -> Grader | None:
        """Return a grader; None when there is none."""
        if self.grader_cls is None:
            return None
        return self.grader_cls(copy.deepcopy(self.grader_config))


def _a_class(option: str, named: Any, base: type) -> Any:
    value = _resolved(named)
    if isinstance(value, type) and issubclass(value, base):
        return value
    raise TypeError(f"LocalBackend needs as {option} a class of {base.__name__}s, not {value!r}")


def _resolved(named: Any) -> Any:
    """Return the object itself, or the one that a text `module:name` or `module.name` names."""
    if not isinstance(named, str):
        return named
    module, _, name = named.rpartition(":" if ":" in named else ".")
    if not module or not name:
        raise ValueError(f"{named!r} names no object: write package.module:name")
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value
