"""The scores of one run: its eval functions, its grader, or the reward that the agent gave itself.

An error of theirs is caught here and becomes data. Knows no pytest, and not how the agent was run.
"""

from __future__ import annotations

import _thread
import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from osmosis_ai.error_text import named_error
from osmosis_ai.messages import last_assistant_text
from osmosis_ai.rubric.errors import MissingAPIKeyError, ProviderRequestError
from osmosis_ai.rubric.reasons import heard
from osmosis_ai.running.isolation import RunInMainLoop, run_directly
from osmosis_ai.running.loop_watchdog import LoopHeld
from osmosis_ai.running.timeouts import DeadlineExceeded, is_current, within

from ..dataset.json_copy import json_copy
from ..run_result import FINAL_KINDS, JUDGE_FAILED, NO_JUDGE, NO_REWARD
from ..user_code.agent import AgentResult, AgentRun
from ..user_code.eval_function import EvalFn, EvalFnError
from .failure_text import user_traceback
from .services import RolloutServices

if TYPE_CHECKING:
    from ..dataset.rows import Row
    from ..user_code.workflow import Grading
    from .suite import Suite

REWARD = "reward"
"""The score's name where a grader judges, or else the rollout's own reward is the score."""
TEST = "test"
"""The score's name for the outcome of a marked test itself: 1.0 or 0.0."""


class Scoring:
    """What one run scored."""

    def __init__(
        self, suite: Suite, row: Row, position: Mapping[str, int], services: RolloutServices
    ) -> None:
        """`position` names the run to a grader: its row and run index."""
        self._suite = suite
        self._row = row
        self._position = position
        self._services = services
        self.scores: dict[str, float] = {}
        self.errors: dict[str, str] = {}
        """Message per eval function that gave no score."""
        self.reasons: dict[str, list[str]] = {}
        """What eval functions and judges said of the scores, by eval function; redacted."""
        self.shown: list[str] = []
        """What the item shows of each eval function that gave no score: frames, or a sentence."""
        self.kind: str | None = None
        """Why there is no score, where that says more than the errors: see `run_result`."""

    async def score(self, outcome: AgentResult, run: AgentRun, row_name: str) -> None:
        """Call every eval function; one that fails does not keep the others from scoring."""
        suite = self._suite
        if suite.grading is not None:
            async with suite.grading.slot:
                await self._score_with(REWARD, partial(self._graded, suite.grading, outcome, run))
        elif not suite.eval_fns:
            self._take_reward(outcome)
        solution = last_assistant_text(outcome.messages)
        metadata = self._row.metadata()
        for eval_fn in suite.eval_fns:
            given = {
                "messages": outcome.messages,
                "solution_str": solution,
                "ground_truth": self._row.ground_truth,
                "metadata": metadata,
            }
            await self._score_with(eval_fn.name, partial(self._called, eval_fn, given, row_name))

    async def _graded(self, grading: Grading, outcome: AgentResult, run: AgentRun) -> float:
        metadata = json_copy({**self._row.metadata(), **self._position})
        limit_s = self._suite.spec.grader_timeout_s
        judged = self._services.isolate(
            grading,
            grading.name,
            lambda run_in_main_loop: grading.reward(run, outcome, metadata),
            within_s=limit_s,
        )
        return await within(limit_s, judged)

    async def _called(self, eval_fn: EvalFn, given: dict[str, Any], row_name: str) -> float:
        services, limit_s = self._services, self._suite.spec.grader_timeout_s

        async def limited(call: Callable[[], Any]) -> Any:
            began = time.perf_counter()
            returned = await services.run_sync(call, limit_s)
            if type(returned) is not float and isawaitable(returned):
                left_s = max(0.0, limit_s - (time.perf_counter() - began))
                returned = await within(left_s, eval_fn.awaited(returned))
            return returned

        def section(run_in_main_loop: RunInMainLoop) -> Coroutine[Any, Any, float]:
            return eval_fn.call(**given, run_sync=limited, row=row_name)

        if not eval_fn.is_async:
            return await section(run_directly)  # without a task: `limited` has the deadline
        called = services.isolate(eval_fn, eval_fn.name, section, within_s=limit_s)
        return await within(limit_s, called)

    async def _score_with(self, name: str, score: Callable[[], Awaitable[float]]) -> None:
        task = asyncio.current_task()
        with heard() as reasons:
            try:
                self.scores[name] = await score()
            except DeadlineExceeded as late:
                self._no_score(name, f"`{name}` {late}")
            except LoopHeld as held:
                limit = f"{self._suite.spec.grader_timeout_s:g} s"
                self._no_score(name, f"`{name}` timed out after {limit}: {held}")
            except EvalFnError as error:
                self._no_score(name, str(error))
            except BaseException as error:
                if isinstance(error, GeneratorExit) and not is_current(task):
                    raise
                if isinstance(error, asyncio.CancelledError) and self._services.is_ending():
                    raise
                if isinstance(error, KeyboardInterrupt):
                    _thread.interrupt_main()
                if self.kind != NO_JUDGE:
                    self.kind = _judge_error_kind(error) or self.kind
                message = f"`{name}` raised {named_error(error)}"
                self._no_score(name, message, shown=user_traceback(error))
        if reasons:
            self.reasons[name] = [self._suite.redact(each) for each in dict.fromkeys(reasons)]

    def _no_score(self, name: str, message: str, *, shown: str | None = None) -> None:
        self.errors[name] = message
        self.shown.append((shown or message).rstrip())

    def _take_reward(self, outcome: AgentResult) -> None:
        if outcome.reward is None:
            self.kind = NO_REWARD
            self._no_score(
                REWARD,
                "the rollout has no reward to score it by: "
                f"{self._suite.agent.reward_hint} or give --osmosis-eval-fn",
            )
        else:
            self.scores[REWARD] = outcome.reward


def _judge_error_kind(error: BaseException) -> str | None:
    """Return what kind of error kept a judge from a score, if another try may give one."""
    if isinstance(error, MissingAPIKeyError):
        return NO_JUDGE
    if not isinstance(error, ProviderRequestError):
        return None
    if error.fatal:  # its provider refuses every run alike
        return NO_JUDGE
    return None if error.kind in (*FINAL_KINDS, "verdict") else JUDGE_FAILED
