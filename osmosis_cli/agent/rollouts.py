"""Rollouts without scores: an agent on rows of a dataset, and what came of each.

Runs the agent as an evaluation does. Knows neither the command line nor what is printed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from osmosis_ai.models.base import ProviderError, clip
from osmosis_ai.secret import Redactor
from pytest_osmosis.rollouts.guards.timeouts import DeadlineExceeded, within

if TYPE_CHECKING:
    from osmosis_ai.agents.client import LLMClient, ModelLLM
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.rollout import RolloutAgentLoop, RolloutRequest, RolloutResult
    from pytest_osmosis.dataset.dataset import Dataset
    from pytest_osmosis.dataset.rows import Row
    from pytest_osmosis.spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to run, and how."""

    agent: RolloutAgentLoop
    dataset: Dataset
    model: ModelSpec
    max_turns: int
    timeout_s: float
    batch_size: int = 1
    debug_dir: str | None = None
    redact: Redactor = field(default_factory=Redactor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the rollout of one row ended."""

    row: str
    row_index: int
    status: str
    """COMPLETED or ERROR."""
    finish_reason: str | None
    error: str | None
    model_calls: int
    tool_calls: int
    tokens: int | None
    """None when the endpoint does not tell."""
    duration_s: float
    answer: str
    """The last assistant text."""
    fatal: bool = False
    """No other row can succeed."""


Wrap = Callable[["ModelLLM"], "LLMClient"]


async def run_rows(
    trial: Trial, positions: Iterable[int], on_ended: Callable[[Ended], None]
) -> None:
    """Run the rows at these positions of the selection, `batch_size` at once."""
    left = iter(positions)

    async with opened(trial) as model:

        async def work() -> None:
            for position in left:
                ended = await run_row(trial, position, model)
                on_ended(ended)
                if ended.fatal:
                    for _ in left:  # nobody starts another
                        pass

        await asyncio.gather(*(work() for _ in range(trial.batch_size)))


@asynccontextmanager
async def opened(trial: Trial) -> AsyncIterator[ChatModel]:
    """The trial's model, closed again in the end."""
    from osmosis_ai.embedded import start_embedded
    from pytest_osmosis.rollouts.prepare import open_model

    persona = trial.model.persona
    endpoint = None if persona is None else start_embedded(persona)
    base_urls = {} if endpoint is None or persona is None else {persona: endpoint.base_url}
    try:
        model = open_model(trial.model, base_urls=base_urls, pool_size=trial.batch_size)
        try:
            yield model
        finally:
            await model.aclose()
    finally:
        if endpoint is not None:
            endpoint.close()


async def run_row(
    trial: Trial,
    position: int,
    model: ChatModel,
    *,
    wrap: Wrap | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run one row; `wrap` puts something between the agent and its model."""
    from osmosis_ai.agents.client import ModelLLM
    from osmosis_ai.agents.runner import run_rollout
    from osmosis_ai.agents.tools import dump_tools

    started, row = time.monotonic(), trial.dataset.row(position)
    request = _request(trial, row)
    llm: ModelLLM | None = None
    result: RolloutResult | None = None
    error: str | None = None
    fatal = False

    async def rolled_out() -> RolloutResult:
        nonlocal llm
        tools: Any = trial.agent.get_tools(request)
        owner = f"{type(trial.agent).__name__}.get_tools"
        llm = ModelLLM(model, tools=dump_tools(tools, owner=owner), params=_sent(trial, request))
        client = llm if wrap is None else wrap(llm)
        return await run_rollout(
            trial.agent, request, client, tools=tools, debug_dir=trial.debug_dir
        )

    try:
        result = await within(timeout_s or trial.timeout_s, rolled_out())
        error = result.error_message
    except DeadlineExceeded as late:
        error = f"the agent {late}"
    except ProviderError as refused:
        error, fatal = str(refused), refused.fatal
    except (Exception, SystemExit) as broken:  # noqa: BLE001  the agent's failure is what is shown
        error = f"{type(broken).__name__}: {broken}"
    seconds = time.monotonic() - started
    return _ended(trial, position, llm, result, error=error, fatal=fatal, seconds=seconds)


def _request(trial: Trial, row: Row) -> RolloutRequest:
    from osmosis_ai.rollout import RolloutRequest

    return RolloutRequest.for_eval(
        rollout_id=f"test-{row.row_index}",
        messages=[
            {"role": "system", "content": row.system_prompt},
            {"role": "user", "content": row.user_prompt},
        ],
        completion_params=_params(trial.model),
        metadata={
            **row.extra,
            "ground_truth": row.ground_truth,
            "row_index": row.row_index,
            "run_index": 0,
            "execution_mode": "test",
        },
        max_turns=trial.max_turns,
    )


def _params(model: ModelSpec) -> dict[str, Any]:
    params = dict(model.sampling)
    return params if model.seed is None else {**params, "seed": model.seed}


def _sent(trial: Trial, request: RolloutRequest) -> dict[str, Any]:
    params = _params(trial.model)
    if trial.model.persona is None:
        return params
    return {**params, "user": request.rollout_id}  # the embedded endpoint errs by rollout


def _ended(
    trial: Trial,
    position: int,
    llm: ModelLLM | None,
    result: RolloutResult | None,
    *,
    error: str | None,
    fatal: bool,
    seconds: float,
) -> Ended:
    from osmosis_ai.messages import last_assistant_text

    failed = result is None or result.status == "ERROR"
    metrics = result.metrics if result is not None else None
    return Ended(
        row=trial.dataset.row_name(position),
        row_index=trial.dataset.index_of(position),
        status="ERROR" if failed else "COMPLETED",
        finish_reason=None if result is None else result.finish_reason,
        error=clip(trial.redact(error or "no reason given")) if failed else None,
        model_calls=0 if llm is None else llm.num_llm_calls,
        tool_calls=0 if metrics is None else metrics.num_tool_calls,
        tokens=None if llm is None else llm.total_tokens,
        duration_s=round(seconds, 3),
        answer="" if result is None else last_assistant_text(result.final_messages),
        fatal=fatal,
    )
