"""One evaluation ready to run: its rows, agent and eval functions.

`Suite.run` turns a row into a `RolloutRecord`: see `rollout`, and `user_code` for how an agent is
run. Knows no pytest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..run_result import RolloutRecord, RunId, RunResult, SuiteInfo
from ..storage.excerpt import masked, plain
from ..user_code.agent import AgentResult
from ..user_code.user_hooks import UserHooks
from .failure_text import explanation, harmless
from .rollout import Rollout
from .services import RunServices

if TYPE_CHECKING:
    from osmosis_ai.secret import Redactor

    from ..dataset.dataset import Dataset
    from ..spec import EvalSpec, SessionSpec
    from ..user_code.agent import Agent
    from ..user_code.eval_function import EvalFn
    from ..user_code.workflow import Grading


class Suite:
    """An `EvalSpec` with everything loaded that it names."""

    calls_model = True
    """Whether its runs call the model."""

    def __init__(
        self,
        spec: EvalSpec,
        session: SessionSpec,
        *,
        info: SuiteInfo,
        dataset: Dataset,
        agent: Agent,
        redact: Redactor,
        eval_fns: Sequence[EvalFn] = (),
        grading: Grading | None = None,
        hooks: UserHooks | None = None,
    ) -> None:
        self.spec = spec
        self.info = info
        self.dataset = dataset
        self.agent = agent
        self.redact = redact
        self.eval_fns = eval_fns
        self.grading = grading
        self.keep_answers = session.answers
        self.trajectories = session.trajectories
        self.debug_dir = None if session.debug_dir is None else str(session.debug_dir)
        self.hooks = hooks or UserHooks()
        self.gated = spec.baseline_of is not None
        """Whether its runs are observations, which something else decides on."""
        limit = agent.max_concurrent
        self.slots = None if limit is None else asyncio.Semaphore(limit)
        """Where the agent limits how many of its rollouts are in flight."""

    def runs_of(self, row_index: int) -> Iterable[int]:
        """The run indices of a row."""
        return range(self.spec.n)

    def run(self, run_id: RunId, services: RunServices) -> Awaitable[RolloutRecord]:
        """Run a row once and score what came of it; raise DatasetError when it has changed."""
        return Rollout(self, self.dataset.row(run_id.row_index), run_id, services).run()

    async def score_again(self, recorded: RolloutRecord, services: RunServices) -> RolloutRecord:
        """Call the eval functions of a recorded run once more: nothing is sent to the model."""
        before = recorded.result
        run = Rollout(self, self.dataset.row(before.row_index), before.run_id, services)
        run.outcome = AgentResult(
            recorded.messages, reward=recorded.reward, tool_calls=before.tool_calls
        )
        await run.score()
        return replace(run.rescored(before), calls=recorded.calls)

    def explain(self, record: RolloutRecord) -> str:
        """Return what the item of a run prints that did not pass; redacted.

        Redacted ahead too, because texts are cut. Nothing but its error is known of a run that
        something else ended.
        """
        result, redact = record.result, self.redact
        if not result.duration_ms:
            return redact(harmless([record.frames or result.error or ""]))
        truth = record.ground_truth
        text = explanation(
            result,
            threshold=self.spec.pass_threshold,
            max_turns=self.spec.max_turns,
            messages=masked(plain(record.messages), redact),
            ground_truth=None if truth is None else redact(truth),
            frames=record.frames,
            reasons=record.reasons,
            whole=self.trajectories,
        )
        return redact(text)

    def lost(self, run_id: RunId, *, error: str, error_type: Any) -> RunResult:
        """The result of a run that something other than its own code ended."""
        return RunResult(
            suite=run_id.suite,
            row_index=run_id.row_index,
            run_index=run_id.run_index,
            row_id=self.dataset.row_id(run_id.row_index),
            error=self.redact(error),
            error_type=error_type,
        )
