"""One evaluation ready to run: its rows, agent and eval functions, and what one run of it does.

`Suite.run` turns a row into a `Finished`: rollout, then scores, within their deadlines; whatever
goes wrong is caught here, once, and becomes data. Knows neither pytest nor who is waiting.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from osmosis_ai.models.base import ProviderError
from osmosis_ai.secret import Redactor

from .deadlines import DeadlineExceeded, within
from .failures import explanation, user_traceback
from .results import ANSWER_LIMIT, RunResult, SuiteInfo
from .scoring import EvalFn, EvalFnError, RunSync, last_assistant_text
from .spec import EvalSpec

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.rollout import RolloutAgentLoop
    from osmosis_ai.rollout.core.results import RolloutResult
    from osmosis_ai.rollout.llm import ModelLLM

    from .dataset import Dataset, Row

REWARD = "reward"
"""The score's name when no eval function is given: the rollout's own reward."""
TEST = "test"
"""The score's name for the outcome of a marked test itself: 1.0 or 0.0."""


@dataclass(slots=True)
class Finished:
    """A run that has ended: its result, and what only its own process needs of it."""

    result: RunResult
    explanation: str = ""
    """What the item prints when it did not pass."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    ground_truth: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reward: float | None = None
    sections: list[tuple[str, str]] = field(default_factory=list)
    """What the run printed and logged."""


@dataclass(slots=True)
class _Failure:
    """Why a run has no scores, or not all of them."""

    type: str
    message: str
    frames: str | None = None
    fatal: bool = False


class _Ended(Exception):
    """The agent tried to end the process."""


class Suite:
    """An `EvalSpec` with everything loaded that it names."""

    def __init__(
        self,
        spec: EvalSpec,
        *,
        info: SuiteInfo,
        dataset: Dataset,
        agent: RolloutAgentLoop,
        eval_fns: Sequence[EvalFn],
        redact: Redactor,
        keep_answers: bool = True,
        debug_dir: str | None = None,
    ) -> None:
        self.spec = spec
        self.info = info
        self.dataset = dataset
        self._agent = agent
        self._eval_fns = eval_fns
        self._redact = redact
        self._keep_answers = keep_answers
        self._debug_dir = debug_dir

    async def run(
        self,
        position: int,
        run_index: int,
        *,
        model: Callable[[], Awaitable[ChatModel]],
        run_sync: RunSync,
    ) -> Finished:
        """One run of the row at `position` of the selection."""
        run = _Run(self, self.dataset.row(position), run_index)
        started_at, started = time.time(), time.perf_counter()
        await run.rollout(model)
        if run.failure is None:
            await run.score(run_sync, self.dataset.row_name(position))
        return run.finished(started_at, (time.perf_counter() - started) * 1000.0)

    def lost(self, position: int, run_index: int, *, error: str, error_type: Any) -> RunResult:
        """The result of a run that something other than its own code ended."""
        return RunResult(
            suite=self.spec.name,
            row_index=self.dataset.index_of(position),
            run_index=run_index,
            error=self._redact(error),
            error_type=error_type,
        )


class _Run:
    """One run on its way."""

    def __init__(self, suite: Suite, row: Row, run_index: int) -> None:
        self.suite = suite
        self.row = row
        self.run_index = run_index
        self.llm: ModelLLM | None = None
        self.outcome: RolloutResult | None = None
        self.failure: _Failure | None = None
        self.scores: dict[str, float] = {}
        self.eval_errors: dict[str, str] = {}
        self.shown: list[str] = []
        """What the item shows of each eval function that gave no score: frames, or a sentence."""

    async def rollout(self, model: Callable[[], Awaitable[ChatModel]]) -> None:
        """Run the agent; afterwards there is an outcome or a failure."""
        spec = self.suite.spec
        try:
            self.outcome = await within(spec.agent_timeout_s, self._guarded(model))
        except DeadlineExceeded as late:
            still = "; it ignored its cancellation and was left behind" if late.abandoned else ""
            self.failure = _Failure("timeout", f"the agent {late}{still}")
        except ProviderError as error:
            self.failure = _provider_failure(error)
        except Exception as error:  # noqa: BLE001 - the agent's own error becomes data, here alone
            self.failure = self._agent_failure(error)
        finally:
            if self.llm is not None:
                self.llm.close()
        if self.outcome is not None and self.outcome.status == "ERROR":
            refused = self.llm.last_error if self.llm is not None else None
            message = self.outcome.error_message or "the agent returned an error without a message"
            self.failure = (
                _Failure("agent", message) if refused is None else _provider_failure(refused)
            )

    def _agent_failure(self, error: Exception) -> _Failure:
        if isinstance(error, _Ended):
            return _Failure("agent", str(error), user_traceback(error))
        refused = self.llm.last_error if self.llm is not None else None
        if refused is not None and refused in _causes(error):
            return _provider_failure(refused)
        return _Failure("agent", f"{type(error).__name__}: {error}", user_traceback(error))

    async def _guarded(self, model: Callable[[], Awaitable[ChatModel]]) -> RolloutResult:
        """The rollout, with what would end the event loop turned into an error of the agent."""
        try:
            return await self._rolled_out(model)
        except SystemExit as error:
            raise _Ended(f"the agent called sys.exit({error.code!r})") from error
        except KeyboardInterrupt as error:
            _thread.interrupt_main()
            raise _Ended("the agent raised KeyboardInterrupt") from error

    async def _rolled_out(self, model: Callable[[], Awaitable[ChatModel]]) -> RolloutResult:
        from osmosis_ai.rollout.core.schemas import RolloutRequest
        from osmosis_ai.rollout.llm import ModelLLM
        from osmosis_ai.rollout.runner import run_rollout
        from osmosis_ai.rollout.tools import dump_tools

        agent, params = self.suite._agent, self._params()
        request = RolloutRequest.for_eval(
            rollout_id=self.rollout_id,
            messages=[
                {"role": "system", "content": self.row.system_prompt},
                {"role": "user", "content": self.row.user_prompt},
            ],
            completion_params=params,
            metadata={
                **self.row.extra,
                "ground_truth": self.row.ground_truth,
                "row_index": self.row.row_index,
                "run_index": self.run_index,
                "execution_mode": "eval",
            },
            max_turns=self.suite.spec.max_turns,
        )
        tools = agent.get_tools(request)
        self.llm = ModelLLM(
            await model(),
            tools=dump_tools(tools, owner=f"{type(agent).__name__}.get_tools"),
            params=self._sent(params),
        )
        return await run_rollout(
            agent, request, self.llm, tools=tools, debug_dir=self.suite._debug_dir
        )

    @property
    def rollout_id(self) -> str:
        """`eval-<row_index>-run-<run_index>`."""
        return f"eval-{self.row.row_index}-run-{self.run_index}"

    def _params(self) -> dict[str, Any]:
        model = self.suite.spec.model
        params = dict(model.sampling)
        if model.seed is not None:
            params["seed"] = model.seed + self.run_index
        return params

    def _sent(self, params: dict[str, Any]) -> dict[str, Any]:
        """The embedded endpoint errs by rollout, not by order of arrival: tell it which this is."""
        if self.suite.spec.model.persona is None:
            return params
        return {**params, "user": self.rollout_id}

    async def score(self, run_sync: RunSync, row_name: str) -> None:
        """Call every eval function; one that fails does not keep the others from scoring."""
        assert self.outcome is not None
        if self.suite.spec.marked:
            return
        if not self.suite._eval_fns:
            self._take_reward()
            return
        solution = last_assistant_text(self.outcome.final_messages)
        metadata = self.row.metadata()
        for eval_fn in self.suite._eval_fns:
            call = eval_fn.call(
                messages=self.outcome.final_messages,
                solution_str=solution,
                ground_truth=self.row.ground_truth,
                metadata=metadata,
                run_sync=run_sync,
                row=row_name,
            )
            await self._score_with(eval_fn.name, call)

    async def _score_with(self, name: str, call: Awaitable[float]) -> None:
        try:
            self.scores[name] = await within(self.suite.spec.grader_timeout_s, call)
        except DeadlineExceeded as late:
            self._no_score(name, f"`{name}` {late}")
        except EvalFnError as error:
            self._no_score(name, str(error))
        except Exception as error:  # noqa: BLE001 - the eval function's own error becomes data
            message = f"`{name}` raised {type(error).__name__}: {error}"
            self._no_score(name, message, shown=user_traceback(error))

    def _no_score(self, name: str, message: str, *, shown: str | None = None) -> None:
        self.eval_errors[name] = message
        self.shown.append(shown or message)

    def _take_reward(self) -> None:
        assert self.outcome is not None
        if self.outcome.reward is None:
            self._no_score(
                REWARD,
                "the rollout has no reward to score it by: return "
                "ctx.complete(messages, reward=...) or give --osmosis-eval-fn",
            )
        else:
            self.scores[REWARD] = self.outcome.reward

    def finished(self, started_at: float, duration_ms: float) -> Finished:
        """Everything that is known of the run, redacted."""
        suite, redact = self.suite, self.suite._redact
        messages = self.outcome.final_messages if self.outcome is not None else []
        error_type, error = self._error()
        result = RunResult(
            suite=suite.spec.name,
            row_index=self.row.row_index,
            run_index=self.run_index,
            row_id=self.row.row_id,
            success=self.failure is None,
            passed=self._passed(),
            scores=self.scores,
            error=None if error is None else redact(error),
            error_type=error_type,  # type: ignore[arg-type]
            eval_errors={name: redact(text) for name, text in self.eval_errors.items()},
            answer=redact(last_assistant_text(messages))[:ANSWER_LIMIT]
            if suite._keep_answers and messages
            else None,
            model=suite.info.model,
            started_at=started_at,
            duration_ms=duration_ms,
            fatal=self.failure is not None and self.failure.fatal,
            **self._usage(),
        )
        text = ""
        if (result.outcome != "passed" and not suite.spec.marked) or result.error is not None:
            text = redact(self._explanation(result, messages))
        return Finished(
            result,
            text,
            messages,
            self.row.ground_truth,
            {
                **self.row.metadata(),
                "row_index": self.row.row_index,
                "run_index": self.run_index,
            },
            self.outcome.reward if self.outcome is not None else None,
        )

    def _passed(self) -> bool:
        threshold = self.suite.spec.pass_threshold
        return (
            self.failure is None
            and not self.eval_errors
            and all(score >= threshold for score in self.scores.values())
        )

    def _error(self) -> tuple[str | None, str | None]:
        if self.failure is not None:
            return self.failure.type, self.failure.message
        if self.eval_errors:
            return "eval_fn", "; ".join(self.eval_errors.values())
        return None, None

    def _usage(self) -> dict[str, Any]:
        llm = self.llm
        if llm is None:
            return {}
        metrics = self.outcome.metrics if self.outcome is not None else None
        return {
            "llm_ms": llm.llm_latency_ms,
            "tokens": llm.total_tokens,
            "prompt_tokens": llm.prompt_tokens,
            "completion_tokens": llm.response_tokens,
            "llm_calls": llm.num_llm_calls,
            "tool_calls": metrics.num_tool_calls if metrics is not None else 0,
            "retries": llm.retries,
            "cost_usd": llm.cost_usd,
            "finish_reason": next(reversed(llm.finish_reasons), None),
        }

    def _explanation(self, result: RunResult, messages: list[dict[str, Any]]) -> str:
        frames = "\n\n".join(self.shown) if self.failure is None else self.failure.frames
        return explanation(
            result,
            threshold=self.suite.spec.pass_threshold,
            messages=messages,
            ground_truth=self.row.ground_truth,
            frames=frames,
        )


def _provider_failure(error: ProviderError) -> _Failure:
    return _Failure("provider", str(error), fatal=error.fatal)


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and len(chain) < 20:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    return chain
