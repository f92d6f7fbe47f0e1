"""Many records before one judge, so many at once; what fails becomes data.

A failure that no other record can escape (wrong key, unknown model, no quota) ends the asking.
Knows neither files nor terminals.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, redirect_stdout
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
from osmosis_ai.rubric.judge import Judge
from osmosis_ai.rubric.reasons import collect_reasons
from osmosis_ai.rubric.settings import JudgeSettings
from osmosis_ai.running.thread_calls import CallThreads
from osmosis_ai.secret_variables import masking
from pytest_osmosis.user_code.eval_function import EvalFn, eval_fn
from pytest_osmosis.user_code.import_object import ImportingError, load_object

from ..errors import command_errors, wrong_use
from .config import RubricConfig
from .records import KEY_FIELDS, Record

OPTION = "--eval-fn"
_OWN_FIELDS = ("provider", "model", "api_key", "api_key_env", "system_prompt", "original_input")
_KEPT = (
    "score", "explanation", "clamped", "cost_usd", "retries", "raw", "prompt_tokens",
    "completion_tokens",
)  # fmt: skip
"""Of what a judge said, in the result file."""
Score = Callable[[Record], Awaitable[Mapping[str, Any]]]


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
    result: Mapping[str, Any] | None = None
    """As `return_details=True` has it; of a function `score` and `explanation` alone."""
    error: ProviderRequestError | None = None

    @property
    def score(self) -> float | None:
        """The score, None when there is none."""
        return None if self.result is None else self.result["score"]

    def document(self) -> dict[str, Any]:
        """Return the run as the result file has it."""
        error, result = self.error, self.result or {}
        status = "error" if error else "success" if result else "not_run"
        failure = {} if error is None else {"error_kind": error.kind, "error_status": error.status}
        return {
            "run_index": self.number,
            "status": status,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "duration_seconds": round(self.duration_s, 3),
            **{key: result.get(key) for key in _KEPT},
            "error": None if error is None else error.detail,
            **failure,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingPlan:
    """What is to be judged, and how."""

    config: RubricConfig
    settings: JudgeSettings
    records: Sequence[Record]
    runs: int
    batch_size: int
    function: EvalFn | None = None
    """A project's own function in the place of the judge."""

    def __iter__(self) -> Iterator[Judgement]:
        for record in self.records:
            for number in range(1, self.runs + 1):
                yield Judgement(record=record, number=number)


async def judge_all(plan: JudgingPlan, done: Callable[[Judgement], None]) -> list[Judgement]:
    """Return every run in the order of the plan; `done` is called with each as it ends."""
    runs = list(plan)
    slots, stopped = asyncio.Semaphore(plan.batch_size), asyncio.Event()

    async def work(place: int, score: Score) -> None:
        async with slots:
            if stopped.is_set():
                return
            runs[place] = ended = await _judge(score, runs[place])
            done(ended)
            if ended.error is not None and ended.error.fatal:
                stopped.set()

    async with AsyncExitStack() as stack:
        if plan.function is None:
            judge = await stack.enter_async_context(Judge(plan.settings))
            score: Score = partial(_ask, judge, plan)
        else:
            threads = CallThreads()
            stack.callback(threads.close)
            score = partial(_call, plan.function, threads, plan)
        await asyncio.gather(*(work(place, score) for place in range(len(runs))))
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


async def _ask(judge: Judge, plan: JudgingPlan, record: Record) -> Mapping[str, Any]:
    case = case_of(
        plan.settings,
        plan.config.rubric,
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
    outcome |= {"started_at": started_at, "completed_at": _now()}
    return replace(run, duration_s=time.perf_counter() - started, **outcome)


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


def check_ground_truths(function: EvalFn, records: Sequence[Record], data: Path) -> None:
    """Refuse records whose ground truth a ready scorer cannot compare with: a usage error."""
    if (refuse := function.refuse_ground_truth) is None:
        return
    refused = [(each, fault) for each in records if (fault := refuse(each.ground_truth))]
    if refused:
        record, (what, hint) = refused[0]
        more = f" (and {len(refused) - 1} more records)" if len(refused) > 1 else ""
        raise wrong_use(
            f"--data {data}: record {record.index}{more}: 'ground_truth' {what}, and "
            f"{function.name} compares with it{hint}"
        )


async def _call(
    function: EvalFn, threads: CallThreads, plan: JudgingPlan, record: Record
) -> Mapping[str, Any]:
    """Return what the function says of a record; raise ProviderRequestError."""
    redact, name = masking(plan.settings.api_key), plan.settings.name
    failed = partial(ProviderRequestError, name.provider, name.model, kind="eval_fn")
    with collect_reasons() as reasons:
        try:
            score = await function.call(
                messages=(),
                solution_str=record.solution_str,
                ground_truth=record.ground_truth,
                metadata=_extra_info(plan, record),
                run_sync=threads.run,
                row=lambda: record.name,
            )
        except ProviderRequestError:
            raise
        except MissingAPIKeyError as error:
            raise failed(redact(str(error)), fatal=True) from error
        except Exception as error:  # the user's code: data
            raise failed(redact(named_error(error))) from error
    explanation = "\n".join(map(redact, reasons))
    return {"score": score, "explanation": explanation, "clamped": bool(reasons.clamped)}


def _extra_info(plan: JudgingPlan, record: Record) -> dict[str, Any]:
    """Return the record's own fields, and over them what a judge is asked with.

    A record cannot say which key is used, nor where it is sent.
    """
    info = {key: value for key, value in plan.config.model_info.items() if value is not None}
    fields = {key: info.pop(key) for key in _OWN_FIELDS if key in info}
    if not {"api_key", "api_key_env"} & set(fields):
        provider = plan.settings.name.provider
        usual = key_variables(provider) or (f"{provider.upper()}_API_KEY",)
        fields["api_key_env"] = usual[0]
    bounds = {"score_min": plan.settings.score_min, "score_max": plan.settings.score_max}
    if overrides := {key: value for key, value in info.items() if key not in bounds}:
        fields["model_info_overrides"] = overrides
    if record.original_input is not None:
        fields["original_input"] = record.original_input
    if record.metadata is not None:
        fields["metadata"] = dict(record.metadata)
    own = {key: value for key, value in (record.extra_info or {}).items() if key not in KEY_FIELDS}
    return {**own, **fields, "rubric": plan.config.rubric, **bounds}
