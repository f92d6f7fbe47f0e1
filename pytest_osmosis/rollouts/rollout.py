"""One run of one row: its agent within a deadline, then its scores, then its record.

An error of the agent is caught here, once, and becomes data; for scores see `scoring`. Knows no
pytest.
"""

from __future__ import annotations

import _thread
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from osmosis_ai.messages import last_assistant_text
from osmosis_ai.models.base import INVALID_TEXT, WrappedModel
from osmosis_ai.running.code_warning import call_left_behind
from osmosis_ai.running.guards import CodeEnded
from osmosis_ai.running.main_loop import RunInMainLoop, run_directly
from osmosis_ai.running.section import DeadlineExceeded, LeftBehind, Section
from osmosis_ai.secret import redact

from ..dataset.json_copy import json_copy
from ..run_result import ANSWER_LIMIT, RolloutRecord, RunId, RunResult, whole_ms
from ..storage.excerpt import is_encodable
from ..user_code.agent import AgentResult, AgentRun
from .failure import Failure
from .scoring import Scoring

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatCompletion, ChatModel
    from osmosis_ai.running.captured import Captured
    from osmosis_ai.running.main_loop import RunInMainLoop

    from ..user_code.agent import RunSync
    from .services import Services
    from .suite import Suite

_NONE: Mapping[str, Any] = {}
"""What all results share that have nothing to say: they are kept to the end."""
_NO_ERROR: Mapping[str, Any] = {
    "error": None,
    "error_type": None,
    "error_kind": None,
    "eval_errors": _NONE,
    "judge_errors": _NONE,
}


class Rollout:
    """One run of one row."""

    def __init__(
        self,
        suite: Suite,
        run_id: RunId,
        services: Services,
        captured: Captured,
        model: ChatModel | None,
    ) -> None:
        """`captured` has what it prints; `model` is None where none is called.

        Raises:
            DatasetError: when its row has changed.
        """
        self.suite = suite
        self.run_id = run_id
        self.row = suite.dataset.row(run_id.row_index)
        self.outcome: AgentResult | None = None
        self.failure: Failure | None = None
        self._late: Failure | None = None
        """The failure since the agent's time is up."""
        self._started_at, self._started = 0.0, 0.0
        """The wall clock, and one that only advances, when the agent began."""
        self._services = services
        self._captured = captured
        self._model = model
        self._scoring = Scoring(suite, self.row, run_id, services)
        self._agent_run = self._for_agent()
        self._has_slot = False

    def _for_agent(self) -> AgentRun:
        row, run_id, model = self.row, self.run_id, self.suite.spec.model
        truth = row.ground_truth
        rollout_id = f"eval-{row.row_index}-run-{run_id.run_index}"
        params = dict(model.sampling)
        if model.seed is not None:
            params["seed"] = model.seed + run_id.run_index
        # The embedded endpoint errs by rollout, not by order of arrival: `user` names the rollout.
        sent = {**params, **model.extra_body}
        if self.suite.names_rollouts:
            sent["user"] = rollout_id
        return AgentRun(
            rollout_id=rollout_id,
            messages=row.opening(),
            metadata={
                **json_copy(row.extra),
                "row_index": row.row_index,
                "run_index": run_id.run_index,
                "execution_mode": "eval",
            },
            ground_truth=truth if isinstance(truth, str) else json_copy(truth),
            task=None if row.task is None else json_copy(row.task),
            params=params,
            sent=sent,
            max_turns=self.suite.spec.max_turns,
            model=self._model,
            bridge=partial(self._services.bridge, model),
            run_sync=self._services.threads.run,
            write=self._captured.write,
            debug_dir=self.suite.debug_dir,
            rate_limit=self._services.rate_limit.at(self.suite.info.place),
            price_per_mtok=model.price_per_mtok,
            model_name=model.model,
        )

    async def run(self) -> RolloutRecord:
        """Run the agent, score what it gave, and return the record."""
        suite = self.suite
        if suite.slots is not None:
            self._has_slot = await suite.slots.acquire()
        section = Section(
            suite.agent,
            suite.spec.agent,
            suite.spec.agent_timeout_s,
            job=self.run_id,
            expired=self._expired,
            left=self._leave,
        )
        self._started_at, self._started = time.time(), time.perf_counter()
        try:
            self.outcome = await self._services.guards.run(section, self._begin_agent)
        except LeftBehind:
            raise
        except DeadlineExceeded as late:
            self.failure = self._late or Failure("timeout", f"the agent {late}")
        except Exception as error:  # noqa: BLE001 - the agent's own error becomes data, here alone
            from .errors import classify_exception

            self.failure = classify_exception(error, self._agent_run)
            if isinstance(error, CodeEnded) and isinstance(error.__cause__, KeyboardInterrupt):
                _thread.interrupt_main()
        finally:
            self._end_agent()
        if self.outcome is not None:
            self.failure = self._reported(self.outcome)
        if self.failure is None and self.outcome is not None and not suite.spec.scored_by_test:
            await self._scoring.score(self.outcome, self._agent_run)
        return self.finished()

    async def score_again(self, recorded: RolloutRecord) -> RolloutRecord:
        """Call the eval functions of a recorded run once more: nothing is sent to the model."""
        before, messages = recorded.result, recorded.messages
        outcome = AgentResult(messages, reward=recorded.reward, tool_calls=before.tool_calls)
        self.outcome = outcome
        if not self.suite.spec.scored_by_test:
            await self._scoring.score(outcome, self._agent_run)
        result = replace(before, row_id=self.row.row_id, **self._scored(messages))
        return self._record(result, messages, recorded.calls)

    def _begin_agent(self, run_in_main_loop: RunInMainLoop) -> Awaitable[AgentResult]:
        """Begin to run the agent, in the main loop or in another."""
        run = self._agent_run
        if run_in_main_loop is not run_directly:
            run.run_sync = LoopProxyCalls(run.run_sync, run_in_main_loop)
            if run.model is not None:
                run.model = LoopProxyModel(run.model, run_in_main_loop)
        return self.suite.agent.run(run)

    def _end_agent(self) -> None:
        """End the agent's part: its model takes no more calls."""
        run = self._agent_run
        run.close()
        if self._has_slot:
            self._give_slot()
        call = None if run.llm is None else run.llm.longest_wait()
        if call is None or call.task is None or (run.account and self.outcome is None):
            return  # of the user's own client; or the bridge learns of its end a moment later
        task = call.task if run.account is None else None
        self._services.warnings.append(call_left_behind(self.suite.spec.agent, task))

    def _reported(self, outcome: AgentResult) -> Failure | None:
        """Return the failure of a run whose agent ended by itself, if it has failed."""
        run = self._agent_run
        last = run.llm.last_error if run.llm is not None else None
        if outcome.error is None and last is None:
            return None
        from .errors import reported  # for failures alone

        return reported(outcome, last, run)

    def _give_slot(self) -> None:
        assert self.suite.slots is not None
        self._has_slot = False
        self.suite.slots.release()

    def _expired(self) -> None:
        from .errors import timed_out

        self._late = timed_out(self.suite.spec.agent_timeout_s, self._agent_run)

    def _leave(self) -> None:
        """End the run while the agent continues all the same."""
        assert self._late is not None
        self.failure = self._late
        self._late.message += "; the agent ignored its cancellation and was left behind"
        self._agent_run.close()
        if self._has_slot:
            self._give_slot()
        self._services.leave(self.finished(), self._captured)

    # ---- the value

    def finished(self) -> RolloutRecord:
        """Return everything that is known of the run."""
        failure, row = self.failure, self.row
        duration_ms = (time.perf_counter() - self._started) * 1000.0
        llm = self._agent_run.llm
        messages = self._agent_run.recorded() if self.outcome is None else self.outcome.messages
        result = RunResult(
            suite=self.suite.spec.name,
            row_index=row.row_index,
            run_index=self.run_id.run_index,
            row_id=row.row_id,
            success=failure is None,
            model=self.suite.info.model,
            started_at=self._started_at,
            duration_ms=whole_ms(duration_ms),
            fatal=failure is not None and failure.fatal,
            tool_calls=0 if llm is None or self.outcome is None else self.outcome.tool_calls,
            **(_NONE if llm is None else llm.measures()),
            **self._scored(messages),
        )
        return self._record(result, messages, () if llm is None else llm.calls)

    def _record(
        self, result: RunResult, messages: list[dict[str, Any]], calls: Sequence[Mapping[str, Any]]
    ) -> RolloutRecord:
        """Return the run with its conversation; the question, where an agent failed without one."""
        outcome, has_test = self.outcome, self.suite.spec.scored_by_test
        if not messages and result.error is not None:
            messages = self.row.opening()
        if not is_encodable(messages):
            result.note(INVALID_TEXT)
        return RolloutRecord(
            result,
            "" if result.error is None else self._frames(),
            messages,
            self.row.ground_truth,
            {**self.row.metadata(), **self.run_id.position()} if has_test else _NONE,
            None if outcome is None else outcome.reward,
            calls=calls,
            reasons=self._scoring.reasons,
        )

    def _scored(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the fields that scoring decides: of a recorded run they are replaced."""
        suite, scoring = self.suite, self._scoring
        is_scored = self.failure is None and not scoring.errors
        own = {name: at for name, at in suite.info.thresholds.items() if name in scoring.scores}
        passed = min(scoring.scores.values(), default=math.inf) >= suite.spec.pass_threshold
        if own:
            least = dict.fromkeys(scoring.scores, suite.spec.pass_threshold) | own
            passed = all(score >= least[name] for name, score in scoring.scores.items())
        answer = None  # masked before it is cut, as reasons are: a cut secret is not recognised
        if suite.keep_answers and messages:
            said = redact(last_assistant_text(messages))[:ANSWER_LIMIT]
            answer = said if said or self.outcome is not None else None
        reasons = {
            name: redact("\n".join(told))[:ANSWER_LIMIT] for name, told in scoring.reasons.items()
        }
        return {
            "passed": is_scored and passed,
            "scores": scoring.scores,
            "thresholds": own or _NONE,
            "reasons": reasons or _NONE,
            "rubrics": scoring.rubrics or _NONE,
            "clamped": scoring.clamped,
            "answer": answer,
            **(_NO_ERROR if is_scored else self._error()),
        }

    def _error(self) -> dict[str, Any]:
        """Return the fields of a run that has not all its scores."""
        failure, scoring = self.failure, self._scoring
        if failure is None:
            error, error_type, kind = "; ".join(scoring.errors.values()), "eval_fn", scoring.kind
        else:
            error, error_type, kind = failure.message, failure.type, failure.kind
        return {
            "error": error,
            "error_type": error_type,
            "error_kind": kind,
            "eval_errors": scoring.errors or _NONE,
            "judge_errors": scoring.judge_errors or _NONE,
        }

    def _frames(self) -> str:
        """What was raised, by the agent or by eval functions; one line is the error itself."""
        shown = self._scoring.shown if self.failure is None else [self.failure.frames or ""]
        text = "\n\n".join(shown)
        return text if "\n" in text else ""


T = TypeVar("T")


class LoopProxyCalls:
    """`RunSync` whose calls are those of the main loop."""

    def __init__(self, run_sync: RunSync, run_in_main_loop: RunInMainLoop) -> None:
        self._run_sync = run_sync
        self._run_in_main_loop = run_in_main_loop

    def __call__(self, call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        """Make a call as one of the main loop."""
        return self._run_in_main_loop(_awaited(lambda: self._run_sync(call, within_s)))


class LoopProxyModel(WrappedModel):
    """`ChatModel` whose calls are made in the main loop."""

    def __init__(self, model: ChatModel, run_in_main_loop: RunInMainLoop) -> None:
        super().__init__(model)
        self._run_in_main_loop = run_in_main_loop

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], **options: Any
    ) -> ChatCompletion:
        """Ask the model."""
        ask = partial(self._model.complete, messages, **options)
        return await self._run_in_main_loop(_awaited(ask))

    async def aclose(self) -> None:
        """Close the model."""
        await self._run_in_main_loop(_awaited(self._model.aclose))


async def _awaited(start: Callable[[], Awaitable[T]]) -> T:
    return await start()
