"""Many records before one judge, so many at once; what fails becomes data.

A failure that no other record can escape (wrong key, unknown model, no quota) ends the asking.
Knows neither files nor terminals.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from statistics import mean, pvariance
from typing import Any

from osmosis_ai.error_text import named_error
from osmosis_ai.providers import key_variables
from osmosis_ai.rubric.errors import MissingAPIKeyError, ProviderRequestError
from osmosis_ai.rubric.evaluation import case_of
from osmosis_ai.rubric.judge import Judge, RewardRubricRunResult
from osmosis_ai.rubric.reasons import collect_reasons
from osmosis_ai.rubric.settings import JudgeSettings
from osmosis_ai.running.thread_calls import CallThreads
from pytest_osmosis.user_code.eval_function import EvalFn, eval_fn
from pytest_osmosis.user_code.import_object import ImportingError, load_object

from ..errors import command_errors, wrong_use
from .config import RubricConfig
from .records import KEY_FIELDS, Record

OPTION = "--eval-fn"
_OWN_FIELDS = ("provider", "model", "api_key", "api_key_env", "system_prompt", "original_input")
_KEPT = (
    "explanation", "clamped", "cost_usd", "retries", "raw", "prompt_tokens", "completion_tokens"
)  # fmt: skip
"""Of a result, in the result file."""
Score = Callable[[Record], Awaitable[RewardRubricRunResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judgement of one record."""

    record: Record
    number: int
    """From 1."""
    started_at: str | None = None
    """None: never started."""
    completed_at: str | None = None
    duration_s: float = 0.0
    result: RewardRubricRunResult | None = None
    error: ProviderRequestError | None = None

    @property
    def score(self) -> float | None:
        """The score, None when there is none."""
        return None if self.result is None else self.result["score"]

    @property
    def status(self) -> str:
        """`success`, `error` or `not_run`."""
        if self.error is not None:
            return "error"
        return "success" if self.result is not None else "not_run"

    def document(self) -> dict[str, Any]:
        """Return the run as the result file has it."""
        error, result = self.error, self.result
        document: dict[str, Any] = {
            "run_index": self.number,
            "status": self.status,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "duration_seconds": round(self.duration_s, 3),
            "score": self.score,
            "explanation": None,
            "error": None if error is None else error.detail,
            "raw": None,
        }
        if error is not None:
            document |= {"error_kind": error.kind, "error_status": error.status}
        return document if result is None else document | {key: result[key] for key in _KEPT}  # type: ignore[literal-required]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingPlan:
    """What is to be judged, and how."""

    rubric: str
    settings: JudgeSettings
    records: Sequence[Record]
    runs: int
    batch_size: int
    function: RubricFunction | None = None
    """A project's own function in the place of the judge."""

    def __iter__(self) -> Iterator[Judgement]:
        for record in self.records:
            for number in range(1, self.runs + 1):
                yield Judgement(record=record, number=number)

    def __len__(self) -> int:
        return len(self.records) * self.runs


async def judge_all(plan: JudgingPlan, done: Callable[[Judgement], None]) -> list[Judgement]:
    """Return every run in the order of the plan; `done` is called with each as it ends."""
    waiting = enumerate(plan)
    runs = list(plan)
    stopped = asyncio.Event()

    async def work(score: Score) -> None:
        for place, run in waiting:
            if stopped.is_set():
                return
            runs[place] = ended = await _judge(score, run)
            done(ended)
            if ended.error is not None and ended.error.fatal:
                stopped.set()

    async with _scoring(plan) as score:
        workers = [asyncio.ensure_future(work(score)) for _ in range(plan.batch_size)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return runs


def statistics_of(runs: Sequence[Judgement]) -> dict[str, Any]:
    """Return average, variance and the rest over the runs that have a score; None without any.

    The variance is the population's, and exactly 0.0 where all scores are the same.
    """
    scores = [run.score for run in runs if run.score is not None]
    variance = pvariance(scores) if scores else None
    return {
        "average": mean(scores) if scores else None,
        "variance": variance,
        "stdev": None if variance is None else math.sqrt(variance),
        "min": min(scores, default=None),
        "max": max(scores, default=None),
        "total_runs": len(runs),
        "success_count": len(scores),
        "failure_count": len(runs) - len(scores),
    }


@asynccontextmanager
async def _scoring(plan: JudgingPlan) -> AsyncIterator[Score]:
    if plan.function is not None:
        yield plan.function.score
        return
    async with Judge(plan.settings) as judge:
        yield partial(_ask, judge, plan)


async def _ask(judge: Judge, plan: JudgingPlan, record: Record) -> RewardRubricRunResult:
    case = case_of(
        plan.settings,
        plan.rubric,
        record.solution_str,
        ground_truth=record.ground_truth,
        metadata=record.context(),
    )
    if record.original_input is not None:
        case = replace(case, original_input=record.original_input)
    return await judge.judge(case)


async def _judge(score: Score, run: Judgement) -> Judgement:
    started_at, started = _now(), time.perf_counter()
    outcome: dict[str, Any]
    try:
        outcome = {"result": await score(run.record)}
    except ProviderRequestError as error:
        outcome = {"error": error}
    duration_s = time.perf_counter() - started
    ended = replace(run, started_at=started_at, completed_at=_now(), duration_s=duration_s)
    return replace(ended, **outcome)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def load_function(spec: str) -> EvalFn:
    """Return the function `module:name`; what cannot be one is a usage error."""
    with command_errors(ImportingError, code="usage", status=2):
        with redirect_stdout(sys.stderr):  # what the module prints at import
            found = load_object(spec, option=OPTION, roots=[Path.cwd()])
        function = eval_fn(found, name=spec, option=OPTION)
    if function.mode != "simple":
        raise wrong_use(
            f"{OPTION} {spec!r}: takes messages; expected a rubric function "
            "(solution_str, ground_truth, extra_info)"
        )
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFunction:
    """The function, with the rubric that it judges by."""

    function: EvalFn
    config: RubricConfig
    score_min: float
    score_max: float
    redact: Callable[[str], str]
    threads: CallThreads

    async def score(self, record: Record) -> RewardRubricRunResult:
        """Return what the function says of a record; raise ProviderRequestError."""
        with collect_reasons() as reasons:
            try:
                value = await self.function.call(
                    messages=(),
                    solution_str=record.solution_str,
                    ground_truth=record.ground_truth,
                    metadata=self.extra_info(record),
                    run_sync=self.threads.run,
                    row=lambda: record.name,
                )
            except ProviderRequestError:
                raise
            except MissingAPIKeyError as error:
                raise self._error(str(error), fatal=True) from error
            except Exception as error:  # the user's code: data
                raise self._error(named_error(error)) from error
        return self._result(value, "\n".join(map(self.redact, reasons)))

    def extra_info(self, record: Record) -> dict[str, Any]:
        """Return the record's own fields, and over them what a judge is asked with.

        A record cannot say which key is used, nor where it is sent.
        """
        info = dict(self.config.model_info)
        fields = {key: info.pop(key) for key in _OWN_FIELDS if info.get(key) is not None}
        if not {"api_key", "api_key_env"} & set(fields):
            provider = str(fields["provider"])
            usual = key_variables(provider.lower()) or (f"{provider.upper()}_API_KEY",)
            fields["api_key_env"] = usual[0]
        bounds = {"score_min": self.score_min, "score_max": self.score_max}
        if overrides := {key: value for key, value in info.items() if key not in bounds}:
            fields["model_info_overrides"] = overrides
        if record.original_input is not None:
            fields["original_input"] = record.original_input
        if record.metadata is not None:
            fields["metadata"] = dict(record.metadata)
        own = {k: v for k, v in (record.extra_info or {}).items() if k not in KEY_FIELDS}
        return {**own, **fields, "rubric": self.config.rubric, **bounds}

    def _error(self, detail: str, *, fatal: bool = False) -> ProviderRequestError:
        info = self.config.model_info
        provider, model = str(info["provider"]), str(info["model"])
        return ProviderRequestError(
            provider, model, self.redact(detail), kind="eval_fn", fatal=fatal
        )

    def _result(self, score: float, explanation: str) -> RewardRubricRunResult:
        return {
            "score": score,
            "explanation": explanation,
            "raw": None,
            "clamped": False,
            "votes": [],
            "provider": str(self.config.model_info["provider"]),
            "model": str(self.config.model_info["model"]),
            "params": {},
            "prompt_tokens": None,
            "completion_tokens": None,
            "cost_usd": None,
            "retries": 0,
        }
