"""One rollout from its request to the body of its callback, whatever the agent does.

The boundary at which every exception and wrong result of an agent becomes an outcome. Knows
neither threads nor deadlines.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agents.context import RolloutContext, get_rollout_context
from ...agents.errors import OsmosisRolloutError
from ...agents.metrics import RolloutMetrics
from ...agents.request import RolloutRequest
from ...agents.results import CompletionsResult, RolloutResult
from ...agents.runner import run_in
from ...error_text import named_error
from ...models.base import clip

if TYPE_CHECKING:
    from ...agents.base import RolloutAgentLoop
    from ...agents.client import LLMClient

MESSAGE_LIMIT = 2000
"""Characters of an error message that is sent to the trainer."""

logger = logging.getLogger(__name__)

Redact = Callable[[str], str]
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a rollout ended, ready for the wire."""

    status: str
    """COMPLETED or ERROR."""
    body: bytes
    """A RolloutResponse; the same bytes however often it is sent."""
    error: str | None = None


class TracedLLM:
    """`LLMClient` that records each call in the rollout's trace."""

    def __init__(self, llm: LLMClient) -> None:
        self._llm = llm

    async def chat_completions(
        self, messages: list[dict[str, Any]], **params: Any
    ) -> CompletionsResult:
        """Ask, and record request and answer."""
        started = time.monotonic()
        told: dict[str, Any] = {"messages": len(messages), "params": params}
        try:
            answer = await self._llm.chat_completions(messages, **params)
            told |= {"message": answer.message, "finish_reason": answer.finish_reason}
            told |= {"usage": answer.usage}
        except Exception as error:
            told |= {"error": type(error).__name__}
            raise
        finally:
            told["latency_ms"] = round((time.monotonic() - started) * 1000.0, 1)
            if ctx := get_rollout_context():
                ctx.log_event("model_call", **told)
        return answer

    def get_metrics(self) -> RolloutMetrics:
        """Return the totals of all calls so far."""
        return self._llm.get_metrics()


async def execute(
    agent: RolloutAgentLoop,
    request: RolloutRequest,
    llm: LLMClient,
    *,
    tools: Sequence[Any] | None = None,
    debug_dir: Path | None = None,
    redact: Redact = str,
    on_begin: Callable[[RolloutContext], None] = lambda ctx: None,
) -> Outcome:
    """Run the agent once; raise nothing but a cancellation.

    `on_begin` is called with the context, whose metrics can be read whatever the agent does.
    """
    client = TracedLLM(llm) if debug_dir is not None else llm
    ctx = RolloutContext(request, tools, client, debug_dir=debug_dir, redact=redact)
    on_begin(ctx)
    ctx.log_event("rollout_started", messages=request.messages, metadata=request.metadata)
    try:
        if tools is None:
            ctx.tools = list(agent.get_tools(request))
        result = await run_in(ctx, agent)
        outcome = _outcome_of(request, result, redact)
    except (asyncio.CancelledError, GeneratorExit):  # the latter where its loop has ended
        ctx.log_event("rollout_cancelled")
        raise
    except BaseException as error:  # noqa: BLE001  the agent's failure is reported to the trainer
        outcome = raised(request.rollout_id, error, metrics=ctx.metrics(), redact=redact)
    ctx.log_event("rollout_ended", status=outcome.status, error=outcome.error)
    return outcome


def raised(
    rollout_id: str,
    error: BaseException,
    *,
    metrics: RolloutMetrics | None = None,
    redact: Redact,
) -> Outcome:
    """Return the outcome of a rollout whose agent raised; log where, unless the error says all."""
    if not isinstance(error, OsmosisRolloutError):
        trace = "".join(traceback.format_exception(error))
        logger.error("the agent failed in rollout %s\n%s", rollout_id, redact(trace).rstrip())
    return failed(rollout_id, redact(named_error(error)), metrics=metrics)


def failed(rollout_id: str, told: str, *, metrics: RolloutMetrics | None = None) -> Outcome:
    """Return the outcome of a failed rollout; `told` holds no secret."""
    result = RolloutResult("ERROR", [], "error", told, metrics)
    return _encoded(rollout_id, result, clip(told, MESSAGE_LIMIT))


def _outcome_of(request: RolloutRequest, result: RolloutResult, redact: Redact) -> Outcome:
    error = result.error_message
    told = None if error is None else clip(redact(str(error)), MESSAGE_LIMIT)
    try:
        return _encoded(request.rollout_id, result, told)
    except (TypeError, ValueError, RecursionError) as wrong:
        return failed(request.rollout_id, redact(f"the agent's result is not JSON: {wrong}"))


def _encoded(rollout_id: str, result: RolloutResult, error: str | None) -> Outcome:
    # Tokens that are not known are left out: trainers read their numbers as integers.
    metrics = None if result.metrics is None else result.metrics.model_dump(exclude_none=True)
    document = {
        "rollout_id": rollout_id,
        "status": result.status,
        "final_messages": result.final_messages,
        "finish_reason": result.finish_reason,
        "error_message": error,
        "reward": result.reward,
        "metrics": metrics,
        "extra_fields": {},
    }
    return Outcome(result.status, _encode(document).encode("ascii"), error)
