"""`AgentWorkflow`: an agent as any code that talks to an OpenAI-compatible URL.

`run_workflow` runs one and converts what `run` returned into a `RolloutSample`. Knows neither the
bridge behind that URL nor the grader, and sets no deadline.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .context import RolloutContext
from .errors import OsmosisValidationError
from .returned import messages_of
from .schemas import RolloutSample

__all__ = [
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "BaseConfig",
    "ConcurrencyConfig",
    "Messages",
    "run_workflow",
]

Messages = list[dict[str, Any]]
"""A conversation in OpenAI's form."""


class ConcurrencyConfig(BaseModel):
    """How many rollouts may run at once."""

    model_config = ConfigDict(extra="allow")

    max_concurrent: int | None = Field(default=None, ge=1)


class BaseConfig(BaseModel):
    """Settings of a workflow or a grader: further keys, and values of any type, are kept."""

    model_config = ConfigDict(extra="allow", validate_assignment=True, arbitrary_types_allowed=True)

    name: str = ""
    description: str | None = None
    concurrency: ConcurrencyConfig = Field(default_factory=ConcurrencyConfig)


class AgentWorkflowConfig(BaseConfig):
    """A workflow's settings; subclass it, or hand in further keys: they are kept."""


if TYPE_CHECKING:  # the parameter may be left out, also for strict type checkers
    from typing_extensions import TypeVar as DefaultingTypeVar

    TConfig = DefaultingTypeVar("TConfig", bound=AgentWorkflowConfig, default=Any)
else:
    TConfig = TypeVar("TConfig", bound=AgentWorkflowConfig)


@dataclass(slots=True)
class AgentWorkflowContext(Generic[TConfig]):
    """The input of one run of a workflow."""

    prompt: list[dict[str, Any]]
    """The initial messages, usually system then user."""
    config: TConfig = None  # type: ignore[assignment]  # None in tests that need none
    """The workflow's config."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The row's extra data."""
    artifacts_dir: Path | None = None
    """The directory for files of the run; None when there is none."""


class AgentWorkflowOutput(BaseModel):
    """What `run` may return: the conversation, and numbers about it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    messages: Messages | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    info: dict[str, Any] = Field(default_factory=dict)


class AgentWorkflow(ABC, Generic[TConfig]):
    """An agent: subclass it and write `async def run(self, ctx)`."""

    def __init__(self, config: TConfig | None = None) -> None:
        self.config = config

    @abstractmethod
    async def run(
        self, ctx: AgentWorkflowContext[TConfig]
    ) -> AgentWorkflowOutput | Messages | None:
        """Run once. None: take the sample from the source set on the rollout context."""


async def run_workflow(
    workflow: AgentWorkflow[Any], ctx: AgentWorkflowContext[Any], ambient: RolloutContext
) -> RolloutSample | None:
    """Run `workflow` with `ambient` as its rollout context; its exceptions propagate unchanged.

    None when it returned nothing and registered no sample source. Raises OsmosisValidationError
    when what it returned breaks the contract.
    """
    name = type(workflow).__name__
    with ambient:
        running: Any = workflow.run(ctx)
        if not inspect.isawaitable(running):
            raise OsmosisValidationError(f"{name}.run is not async: declare it `async def run`")
        output = await running
        if output is None:
            return await ambient.get_sample()
        output = _as_output(name, output)
        if output.messages is None:
            sample = await ambient.get_sample()
        else:
            sample = RolloutSample(messages=output.messages)
    if sample is not None and output.metrics:
        sample.metrics = {**sample.metrics, **output.metrics}
    return sample


def _as_output(name: str, output: Any) -> AgentWorkflowOutput:
    if isinstance(output, AgentWorkflowOutput):
        output = output.model_dump()
    elif isinstance(output, Sequence) and not isinstance(output, (str, bytes)):
        output = {"messages": [said for each in output for said in messages_of(each) or [each]]}
    else:
        raise OsmosisValidationError(
            f"{name}.run returned {type(output).__name__}; "
            f"expected AgentWorkflowOutput, a list of messages, or None"
        )
    try:
        return AgentWorkflowOutput.model_validate(output)
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise OsmosisValidationError(
            f"{name}.run returned an output whose {where} is wrong: {problem['msg']}"
        ) from None
