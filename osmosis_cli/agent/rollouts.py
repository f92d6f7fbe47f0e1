"""Rollouts without scores: an agent on rows of a dataset, run as an evaluation runs them.

Knows neither the command line nor what is printed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osmosis_ai.embedded import start_embedded
from osmosis_ai.models.errors import FATAL_KINDS
from osmosis_ai.models.rate_limiter import RateLimiter
from osmosis_ai.running.engine import EngineClosed
from pytest_osmosis.rollouts.pool import RolloutPool
from pytest_osmosis.rollouts.prepare import describe
from pytest_osmosis.rollouts.suite import Suite
from pytest_osmosis.run_result import RunId
from pytest_osmosis.spec import EvalSpec, SessionSpec

if TYPE_CHECKING:
    from pytest_osmosis.dataset.dataset import Dataset
    from pytest_osmosis.run_result import RolloutRecord
    from pytest_osmosis.user_code.agent import Agent, AgentResult, AgentRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to run, and how."""

    agent: Agent
    dataset: Dataset
    spec: EvalSpec
    session: SessionSpec

    def row_name(self, record: RolloutRecord) -> str:
        """Return what the row of a rollout is called."""
        return self.dataset.row_name(record.result.row_index)

    def document(self, ended: Sequence[RolloutRecord]) -> dict[str, Any]:
        """Return the results for programs."""
        passed = sum(one.result.success for one in ended)
        return {
            "summary": {
                "total": len(ended),
                "passed": passed,
                "failed": len(ended) - passed,
                "total_duration_ms": sum(one.result.duration_ms for one in ended),
                "total_tokens": sum(one.result.tokens or 0 for one in ended),
            },
            "results": [self._result_document(one) for one in ended],
        }

    def _result_document(self, one: RolloutRecord) -> dict[str, Any]:
        run = one.result
        return {
            "row_index": run.row_index,
            "row": self.row_name(one),
            "success": run.success,
            "error": run.error,
            "duration_ms": run.duration_ms,
            "token_usage": {
                "prompt_tokens": run.prompt_tokens,
                "completion_tokens": run.completion_tokens,
                "total_tokens": run.tokens,
                "num_llm_calls": run.llm_calls,
            },
            "tool_calls": run.tool_calls,
            "reward": one.reward,
            "finish_reason": run.finish_reason,
            "answer": run.answer or "",
        }


def run_rows(
    trial: Trial, row_indices: Iterable[int], on_ended: Callable[[RolloutRecord], None]
) -> None:
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

    def ended(key: RunId, record: RolloutRecord) -> None:
        on_ended(record)
        if record.result.error_kind in FATAL_KINDS:
            pool.halt(record.result.error or "the endpoint refuses every call")

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
            on_finished=ended,
            rate_limit=RateLimiter(),
        )
        stack.callback(pool.close)
        stack.callback(pool.cancel)
        pool.coming(keys)
        for key in keys:
            with suppress(EngineClosed):  # not started after such an error
                pool.result(key)


class _TrialAgent:
    """The agent, whose rollouts have the ids of a trial."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def run(self, run: AgentRun) -> Awaitable[AgentResult]:
        """One rollout of the agent."""
        run.rollout_id = f"test-{run.metadata['row_index']}"
        run.metadata["execution_mode"] = "test"
        return self._agent.run(run)
