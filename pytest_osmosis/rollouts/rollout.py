"""One run of one row: its agent within a deadline, then its scores, then its record.

An error of the agent is caught here, once, and becomes data; for scores see `scoring`. Knows no
pytest.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from osmosis_ai.messages import last_assistant_text
from osmosis_ai.running.code_warning import call_left_behind
from osmosis_ai.running.guards import CodeEnded
from osmosis_ai.running.loop_call import RunInMainLoop, run_directly
from osmosis_ai.running.section import DeadlineExceeded, LeftBehind, Section

from ..dataset.json_copy import json_copy
from ..run_result import ANSWER_LIMIT, RolloutRecord, RunId, RunResult, passes, whole_ms
from ..user_code.agent import AgentResult, AgentRun
from . import errors
from .errors import Failure
from .loop_proxies import LoopProxyCalls, LoopProxyModel
from .scoring import Scoring
from .services import RunServices

if TYPE_CHECKING:
    from osmosis_ai.agents.client import ModelLLM

    from ..dataset.rows import Row
    from .suite import Suite

_NONE: Mapping[str, Any] = {}
"""What all results share that have nothing to say: they are kept to the end."""


class Rollout:
    """One run of one row."""

    def __init__(self, suite: Suite, row: Row, run_id: RunId, services: RunServices) -> None:
        self.suite = suite
        self.row = row
        self.run_index = run_id.run_index
        self.outcome: AgentResult | None = None
        self.failure: Failure | None = None
        self._late: Failure | None = None
        """The failure since the agent's time is up."""
        self._started_at, self._started = 0.0, 0.0
        """The wall clock, and one that only advances, when the agent began."""
        self._services = services
        self._position = {"row_index": row.row_index, "run_index": run_id.run_index}
        self._scoring = Scoring(suite, row, self._position, services)
        self._agent_run = self._for_agent()
        self._attempts: list[AgentRun] = []
        """The last of them is that; the calls of the others were paid as well."""
        self._has_slot = False

    def _for_agent(self) -> AgentRun:
        row, model = self.row, self.suite.spec.model
        rollout_id = f"eval-{row.row_index}-run-{self.run_index}"
        params = dict(model.sampling)
        if model.seed is not None:
            params["seed"] = model.seed + self.run_index
        # The embedded endpoint errs by rollout, not by order of arrival: `user` names the rollout.
        sent = params if model.persona is None else {**params, "user": rollout_id}
        return AgentRun(
            rollout_id=rollout_id,
            messages=row.opening(),
            metadata={**json_copy(row.extra), **self._position, "execution_mode": "eval"},
            ground_truth=row.ground_truth,
            params=params,
            sent=sent,
            max_turns=self.suite.spec.max_turns,
            model=self._services.model,
            bridge=self._services.bridge,
            run_sync=self._services.threads.run,
            write=self._services.captured.write,
            redact=self.suite.redact,
            debug_dir=self.suite.debug_dir,
        )

    async def run(self) -> RolloutRecord:
        """Run the agent, score what it gave, and return the record."""
        suite, services = self.suite, self._services
        if suite.slots is not None:
            self._has_slot = await suite.slots.acquire()
        section = Section(
            suite.agent,
            suite.spec.agent,
            suite.spec.agent_timeout_s,
            job=services.run_id,
            expired=self._expired,
            left=self._leave,
        )
        self._started_at, self._started = time.time(), time.perf_counter()
        try:
            self.outcome = await services.guards.run(section, self._attempt)
        except LeftBehind:
            raise
        except DeadlineExceeded as late:
            self.failure = self._late or Failure("timeout", f"the agent {late}")
        except Exception as error:  # noqa: BLE001 - the agent's own error becomes data, here alone
            self.failure = errors.classify_exception(error, self._agent_run, suite.hooks)
            if isinstance(error, CodeEnded) and isinstance(error.__cause__, KeyboardInterrupt):
                _thread.interrupt_main()
        finally:
            self._end_agent()
        if self.outcome is not None and self.outcome.error is not None:
            self.failure = errors.agent_reported(self.outcome.error, self._agent_run)
        if self.failure is None:
            await self.score()
        return self.finished()

    def _attempt(self, run_in_main_loop: RunInMainLoop) -> Awaitable[AgentResult]:
        """Begin to run the agent, in the main loop or in another."""
        if self._attempts:  # it is moved back
            self._agent_run.close()
            self._agent_run = self._for_agent()
        run = self._agent_run
        self._attempts.append(run)
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
        if call is None or (run.account is not None and self.outcome is None):
            return  # the bridge learns of a cancelled call a moment later
        task = call.task if run.account is None else None
        self._services.warn(call_left_behind(self.suite.spec.agent, task))

    def _give_slot(self) -> None:
        assert self.suite.slots is not None
        self._has_slot = False
        self.suite.slots.release()

    def _expired(self) -> None:
        self._late = errors.timed_out(self.suite.spec.agent_timeout_s, self._agent_run)

    def _leave(self) -> None:
        """End the run while the agent goes on all the same."""
        assert self._late is not None
        self.failure = self._late
        self._late.message += "; the agent ignored its cancellation and was left behind"
        self._agent_run.close()
        if self._has_slot:
            self._give_slot()
        self._services.leave(self.finished())

    async def score(self) -> None:
        """Score what the agent gave."""
        assert self.outcome is not None
        if not self.suite.spec.marked:
            await self._scoring.score(self.outcome, self._agent_run)

    # ---- the value

    def finished(self) -> RolloutRecord:
        """Return everything that is known of the run, redacted."""
        failure = self.failure
        duration_ms = (time.perf_counter() - self._started) * 1000.0
        return self._record(
            RunResult(
                suite=self.suite.spec.name,
                row_index=self.row.row_index,
                run_index=self.run_index,
                row_id=self.row.row_id,
                success=failure is None,
                model=self.suite.info.model,
                started_at=self._started_at,
                duration_ms=whole_ms(duration_ms),
                fatal=failure is not None and failure.fatal,
                thresholds=_NONE,
                **self._usage(),
                **self._scored(),
            )
        )

    def rescored(self, before: RunResult) -> RolloutRecord:
        """Return the record of a run that was recorded, with what scoring it once more gives."""
        return self._record(replace(before, row_id=self.row.row_id, **self._scored()))

    def _record(self, result: RunResult) -> RolloutRecord:
        """Return the run with its conversation; the question, where an agent failed without one."""
        question = [] if result.error is None else self.row.opening()
        return RolloutRecord(
            result,
            self._frames(),
            self._messages() or question,
            self.row.ground_truth,
            {**self.row.metadata(), **self._position} if self.suite.spec.marked else _NONE,
            self.outcome.reward if self.outcome is not None else None,
            calls=[call for client in self._clients() for call in client.calls],
            reasons=self._scoring.reasons,
        )

    def _scored(self) -> dict[str, Any]:
        """Return the fields that scoring decides: of a recorded run they are replaced."""
        messages, (error_type, error) = self._messages(), self._error()
        return {
            "passed": self._passed(),
            "scores": self._scoring.scores,
            "error": None if error is None else self.suite.redact(error),
            "error_type": error_type,
            "error_kind": self._scoring.kind if self.failure is None else self.failure.kind,
            "reasons": self._reasons(),
            "eval_errors": self._eval_errors(),
            "answer": self._answer(messages) if self.suite.keep_answers and messages else None,
        }

    def _reasons(self) -> Mapping[str, str]:
        """Each function's reasons as one text; one for all runs where there are none."""
        said = self._scoring.reasons
        return {name: "\n".join(texts)[:ANSWER_LIMIT] for name, texts in said.items()} or _NONE

    def _eval_errors(self) -> Mapping[str, str]:
        """One for all runs where there are none: results are kept to the end."""
        redact = self.suite.redact
        return {name: redact(text) for name, text in self._scoring.errors.items()} or _NONE

    def _answer(self, messages: list[dict[str, Any]]) -> str | None:
        """The last thing the agent said; of a run that failed, if it said anything."""
        text = self.suite.redact(last_assistant_text(messages))[:ANSWER_LIMIT]
        return text if text or self.outcome is not None else None

    def _messages(self) -> list[dict[str, Any]]:
        """The whole conversation; of a run that failed, what was recorded."""
        if self.outcome is not None:
            return self.outcome.messages
        return self._agent_run.recorded()

    def _frames(self) -> str:
        """What was raised, by the agent or by eval functions; one line is the error itself."""
        shown = self._scoring.shown if self.failure is None else [self.failure.frames or ""]
        text = "\n\n".join(shown)
        return self.suite.redact(text) if "\n" in text else ""

    def _passed(self) -> bool:
        threshold = self.suite.spec.pass_threshold
        return (
            self.failure is None
            and not self._scoring.errors
            and all(passes(score, threshold) for score in self._scoring.scores.values())
        )

    def _error(self) -> tuple[str | None, str | None]:
        if self.failure is not None:
            return self.failure.type, self.failure.message
        if self._scoring.errors:
            return "eval_fn", "; ".join(self._scoring.errors.values())
        return None, None

    def _usage(self) -> dict[str, Any]:
        """Return the fields that the agent's model calls decide."""
        clients = self._clients()
        if not clients:
            return {}
        tool_calls = self.outcome.tool_calls if self.outcome is not None else 0
        if len(clients) == 1:
            return {**clients[0].measures(), "tool_calls": tool_calls}
        from osmosis_ai.agents.client import add_measures

        taken = reduce(add_measures, [client.measures() for client in clients])
        return {**taken, "tool_calls": tool_calls}

    def _clients(self) -> list[ModelLLM]:
        """The clients of all attempts, the last one last."""
        return [run.llm for run in self._attempts if run.llm is not None]
