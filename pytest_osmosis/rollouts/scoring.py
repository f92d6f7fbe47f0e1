"""The scores of one run: its eval functions, its grader, or the reward that the agent gave itself.

An error of theirs is caught here and becomes data. Knows no pytest, and not how the agent was run.
"""

from __future__ import annotations

import _thread
import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from osmosis_ai.messages import last_assistant_text, text_of
from osmosis_ai.rubric.reasons import collect_reasons
from osmosis_ai.running.guards import CodeEnded
from osmosis_ai.running.section import DeadlineExceeded, Section

from ..dataset.json_copy import json_copy
from ..errors import EvalFnError
from ..run_result import JUDGE_FAILED, NO_JUDGE, NO_REWARD, RunId
from ..user_code.agent import AgentResult, AgentRun
from ..user_code.eval_function import EvalFn

if TYPE_CHECKING:
    from ..dataset.rows import Row
    from ..user_code.workflow import Grading
    from .services import Services
    from .suite import Suite

REWARD = "reward"
"""The score's name where a grader judges, or else the rollout's own reward is the score."""
TEST = "test"
"""The score's name for the outcome of a test itself: 1.0 or 0.0."""


class Scoring:
    """What one run scored."""

    def __init__(self, suite: Suite, row: Row, run_id: RunId, services: Services) -> None:
        self.suite = suite
        self._row = row
        self._run_id = run_id
        self._services = services
        self._limit_s = suite.spec.grader_timeout_s
        self.scores: dict[str, float] = {}
        self.errors: dict[str, str] = {}
        """Message per eval function that gave no score."""
        self.reasons: dict[str, list[str]] = {}
        """What eval functions and judges said of the scores, by eval function."""
        self.rubrics: dict[str, str] = {}
        """The digest of the text that judges judged by, by eval function."""
        self.clamped = 0
        """Scores of judges that lay outside of their bounds."""
        self.shown: list[str] = []
        """What the item shows of each eval function that gave no score: frames, or a sentence."""
        self.judge_errors: dict[str, str] = {}
        """Kind of error per eval function whose judge gave no score."""
        self._lacks_reward = False

    async def score(self, outcome: AgentResult, run: AgentRun) -> None:
        """Call every eval function; one that fails does not keep the others from scoring."""
        suite = self.suite
        score_with = self._score_within if self._services.around else self._score_with
        if suite.grading is not None:
            async with suite.grading.slot:
                await score_with(REWARD, self._graded(suite.grading, outcome, run))
        elif not suite.eval_fns:
            self._take_reward(outcome)
        messages = outcome.messages
        if suite.spec.strip_reasoning:
            messages = [*map(_without_reasoning, messages)]
        given = {
            "messages": messages,
            "solution_str": last_assistant_text(messages),
            "ground_truth": self._row.ground_truth,
            "metadata": self._row.metadata(),
        }
        for eval_fn in suite.eval_fns:
            own = {"ground_truth": self._row.own_truth} if eval_fn.reads_own_truth else {}
            await score_with(eval_fn.name, self._called(eval_fn, {**given, **own}))

    def _graded(
        self, grading: Grading, outcome: AgentResult, run: AgentRun
    ) -> Coroutine[Any, Any, float]:
        columns = {**self._row.metadata(), **self._run_id.position()}
        metadata = json_copy(columns if self._row.task is None else self._row.task)
        section = Section(grading, grading.name, self._limit_s, job=self._run_id)
        return self._services.guards.apart(
            section, lambda main_loop: grading.reward(run, outcome, metadata)
        )

    def _called(self, eval_fn: EvalFn, given: dict[str, Any]) -> Coroutine[Any, Any, float]:
        services, limit_s, began = self._services, self._limit_s, time.monotonic()

        def run_async(call: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
            took_s = time.monotonic() - began
            section = Section(eval_fn, eval_fn.name, limit_s, took_s=took_s, job=self._run_id)
            return services.guards.apart(section, lambda main_loop: eval_fn.awaited(call))

        return eval_fn.call(
            **given,
            run_sync=partial(services.threads.run, within_s=limit_s),
            run_async=run_async,
            row=partial(self.suite.dataset.row_name, self._row.row_index),
            source=self.suite.spec.data.name,
        )

    async def _score_within(self, name: str, score: Awaitable[float]) -> None:
        with ExitStack() as entered:
            for around in self._services.around:
                entered.enter_context(around.scoring(name, self))
            await self._score_with(name, score)

    async def _score_with(self, name: str, score: Awaitable[float]) -> None:
        """Await a score; that there is none becomes data."""
        with collect_reasons() as reasons:
            try:
                self.scores[name] = await score
            except DeadlineExceeded as late:
                self._no_score(name, f"`{name}` {late}")
            except EvalFnError as error:
                self._no_score(name, str(error))
            except GeneratorExit:  # the event loop has ended
                raise
            except BaseException as error:
                from .failure_text import user_traceback

                if isinstance(error, asyncio.CancelledError) and self._services.guards.is_ending:
                    raise
                ended = error if isinstance(error, CodeEnded) else CodeEnded(error)
                cause = (error.__cause__ if isinstance(error, CodeEnded) else error) or error
                if isinstance(cause, KeyboardInterrupt):
                    _thread.interrupt_main()
                if (kind := _judge_error_kind(cause)) is not None:
                    self.judge_errors[name] = kind
                self._no_score(name, f"`{name}` {ended}", shown=user_traceback(cause))
        self.clamped += reasons.clamped
        if digest := reasons.rubric_digest:
            self.rubrics[name] = digest
        if reasons:
            self.reasons[name] = [*dict.fromkeys(reasons)]

    @property
    def kind(self) -> str | None:
        """Why there is no score, where that says more than the errors: see `run_result`."""
        if self._lacks_reward:
            return NO_REWARD
        return max(self.judge_errors.values(), default=None, key=lambda kind: kind == NO_JUDGE)

    def _no_score(self, name: str, message: str, *, shown: str | None = None) -> None:
        self.errors[name] = message
        self.shown.append((shown or message).rstrip())

    def _take_reward(self, outcome: AgentResult) -> None:
        if outcome.reward is None:
            self._lacks_reward = True
            self._no_score(
                REWARD,
                "the rollout has no reward to score it by: "
                f"{self.suite.agent.reward_hint} or give --osmosis-eval-fn",
            )
        else:
            self.scores[REWARD] = outcome.reward


def _without_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    from osmosis_ai.reasoning import without_reasoning

    text = text_of(message.get("content")) if message.get("role") == "assistant" else ""
    answer = without_reasoning(text)
    return message if answer == text else {**message, "content": answer}


def _judge_error_kind(error: BaseException) -> str | None:
    """Return what kind of error kept a judge from a score; None where none was asked."""
    from osmosis_ai.rubric.errors import MissingAPIKeyError, ProviderRequestError

    if isinstance(error, MissingAPIKeyError):
        return NO_JUDGE
    if not isinstance(error, ProviderRequestError):  # perhaps of a client of the function's own
        from osmosis_ai.models.client_exceptions import provider_error_of

        found = provider_error_of(error)
        return None if found is None or found.kind == "bad_request" else JUDGE_FAILED
    return NO_JUDGE if error.fatal else JUDGE_FAILED
