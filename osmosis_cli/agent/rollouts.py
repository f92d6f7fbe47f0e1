"""Rollouts without scores: an agent on rows of a dataset, run as an evaluation runs them.

Knows neither the command line nor what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from osmosis_ai.embedded import start_embedded
from osmosis_ai.models.base import clip
from osmosis_ai.models.rate_limiter import RateLimiter
from osmosis_ai.running.engine import EngineClosed
from pytest_osmosis.rollouts.pool import RolloutPool
from pytest_osmosis.rollouts.prepare import describe
from pytest_osmosis.rollouts.suite import Suite
from pytest_osmosis.run_result import RunId
from pytest_osmosis.spec import EvalSpec, SessionSpec
from pytest_osmosis.user_code.agent_loop import LoopAgent

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop
    from pytest_osmosis.dataset.dataset import Dataset
    from pytest_osmosis.run_result import RolloutRecord
    from pytest_osmosis.user_code.agent import AgentResult, AgentRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to run, and how."""

    agent: RolloutAgentLoop
    dataset: Dataset
    spec: EvalSpec
    session: SessionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
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
    """None when the endpoint does not report them."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    duration_s: float
    answer: str
    """The last assistant text."""
    reward: float | None = None
    """What the rollout gave itself."""
    messages: Sequence[Mapping[str, Any]] = ()
    """The conversation, without secrets."""

    def summary(self) -> dict[str, Any]:
        """Return all but the conversation."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "messages"
        }


OnEnded = Callable[[TrialResult], None]


def run_rows(trial: Trial, row_indices: Iterable[int], on_ended: OnEnded) -> None:
    """Run these rows of the dataset, a batch at once; `on_ended` is called in the pool's thread.

    None is started after an error that every other row would meet, too.
    """
    suite = Suite(
        trial.spec,
        trial.session,
        info=describe(trial.spec, trial.dataset),
        dataset=trial.dataset,
        agent=_TrialAgent(trial.agent),
    )
    size = trial.session.batch_size
    keys = [RunId(trial.spec.name, row_index, 0) for row_index in row_indices]
    with ExitStack() as stack:
        base_urls = {}
        if persona := trial.spec.model.persona:
            base_urls[persona] = stack.enter_context(start_embedded(persona)).base_url
        pool = RolloutPool(
            {trial.spec.name: suite},
            window=size,
            pool_size=size,
            base_urls=base_urls,
            on_finished=lambda key, record: on_ended(_result(trial, key, record)),
            rate_limit=RateLimiter(),
        )
        stack.callback(pool.close)
        stack.callback(pool.cancel)
        pool.coming(keys)
        for key in keys:
            with suppress(EngineClosed):  # not started after such an error
                pool.result(key)


class _TrialAgent(LoopAgent):
    """The agent loop, with the ids of a trial."""

    async def run(self, run: AgentRun) -> AgentResult:
        run.rollout_id = f"test-{run.metadata['row_index']}"
        run.metadata["execution_mode"] = "test"
        return await super().run(run)


def _result(trial: Trial, key: RunId, record: RolloutRecord) -> TrialResult:
    run = record.result
    return TrialResult(
        row=trial.dataset.row_name(key.row_index),
        row_index=run.row_index,
        status="COMPLETED" if run.success else "ERROR",
        finish_reason=run.finish_reason,
        error=None if run.success else clip(run.error or "no reason given"),
        model_calls=run.llm_calls,
        tool_calls=run.tool_calls,
        tokens=run.tokens,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
        duration_s=round(run.duration_ms / 1000.0, 3),
        answer=run.answer or "",
        reward=record.reward,
        messages=record.messages,
    )


def results_document(ended: Sequence[TrialResult]) -> dict[str, Any]:
    """Return the document of these results."""
    passed = sum(one.status == "COMPLETED" for one in ended)
    return {
        "summary": {
            "total": len(ended),
            "passed": passed,
            "failed": len(ended) - passed,
            "total_duration_ms": sum(_milliseconds(one) for one in ended),
            "total_tokens": sum(one.tokens or 0 for one in ended),
        },
        "results": [_result_document(one) for one in ended],
    }


def _result_document(one: TrialResult) -> dict[str, Any]:
    return {
        "row_index": one.row_index,
        "row": one.row,
        "success": one.status == "COMPLETED",
        "error": one.error,
        "duration_ms": _milliseconds(one),
        "token_usage": {
            "prompt_tokens": one.prompt_tokens,
            "completion_tokens": one.completion_tokens,
            "total_tokens": one.tokens,
            "num_llm_calls": one.model_calls,
        },
        "tool_calls": one.tool_calls,
        "reward": one.reward,
        "finish_reason": one.finish_reason,
        "answer": one.answer,
    }


def _milliseconds(one: TrialResult) -> int:
    return round(one.duration_s * 1000)
