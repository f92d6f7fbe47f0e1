"""Many records before one judge, so many at once; what fails becomes data.

A failure that no other record can escape (wrong key, unknown model, no quota) ends the asking.
Knows neither files nor terminals.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from osmosis_ai.error_text import named_error
from osmosis_ai.providers import key_variables
from osmosis_ai.rubric import aevaluate_rubric
from osmosis_ai.rubric.errors import MissingAPIKeyError, ProviderRequestError
from osmosis_ai.rubric.reasons import collect_reasons
from osmosis_ai.rubric.settings import JudgeSettings
from osmosis_ai.running.thread_calls import CallThreads
from osmosis_ai.secret import redact
from pytest_osmosis.user_code.eval_function import EvalFn, eval_fn
from pytest_osmosis.user_code.import_object import ImportingError, load_object

from ..errors import command_errors, wrong_use
from .config import RubricConfig
from .records import Record

OPTION = "--eval-fn"
_OWN_FIELDS = (
    "provider", "model", "api_key", "api_key_env", "system_prompt", "original_input", "score_min",
    "score_max",
)  # fmt: skip
"""Of the judge, what a function is given by its name; the rest as `model_info_overrides`."""
_KEPT = (
    "score", "explanation", "clamped", "cost_usd", "retries", "raw", "prompt_tokens",
    "completion_tokens",
)  # fmt: skip
"""Of what a judge said, in the result file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingPlan:
    """What is to be judged, and how."""

    config: RubricConfig
    settings: JudgeSettings
    records: Sequence[Record]
    data: Path
    """Where they stand."""
    runs: int
    batch_size: int
    function: EvalFn | None = None
    """A project's own function in the place of the judge."""


class Judged(NamedTuple):
    """What became of a plan."""

    runs: list[dict[str, Any]]
    """As the result file has them, record after record."""
    first_error: ProviderRequestError | None


async def judge_all(plan: JudgingPlan, done: Callable[[int], None]) -> Judged:
    """Judge every record; `done` is called with 1 when a run of one ends."""
    cases = [(record, number) for record in plan.records for number in range(1, plan.runs + 1)]
    runs = [_document(number) for _, number in cases]
    errors: dict[int, ProviderRequestError] = {}
    slots, stopped = asyncio.Semaphore(plan.batch_size), asyncio.Event()

    async def work(place: int) -> None:
        async with slots:
            if stopped.is_set():
                return
            record, number = cases[place]
            started_at, started = _now(), time.perf_counter()
            result: Mapping[str, Any] = {}
            try:
                result = await score(record)
            except ProviderRequestError as error:
                errors[place] = error
                if error.fatal:
                    stopped.set()
            times = started_at, _now(), time.perf_counter() - started
            runs[place] = _document(number, result, errors.get(place), times)
            done(1)

    with closing(CallThreads()) as threads:
        score = partial(_ask, plan) if plan.function is None else partial(_call, plan, threads)
        await asyncio.gather(*map(work, range(len(cases))))
    return Judged(runs, errors[min(errors)] if errors else None)


def _document(
    number: int,
    result: Mapping[str, Any] | None = None,
    error: ProviderRequestError | None = None,
    times: tuple[str | None, str | None, float] = (None, None, 0.0),
) -> dict[str, Any]:
    """Return the run of a record as the result file has it; one that never started is not run."""
    status = "error" if error else "success" if result else "not_run"
    failure = {} if error is None else {"error_kind": error.kind, "error_status": error.status}
    return {
        "run_index": number,
        "status": status,
        "started_at": times[0],
        "completed_at": times[1],
        "duration_seconds": round(times[2], 3),
        **{key: (result or {}).get(key) for key in _KEPT},
        "error": None if error is None else error.detail,
        **failure,
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


async def _ask(plan: JudgingPlan, record: Record) -> Mapping[str, Any]:
    return await aevaluate_rubric(
        plan.config.rubric,
        record.solution_str,
        plan.config.model_info,
        ground_truth=record.ground_truth,
        original_input=record.original_input,
        metadata=record.context(),
        return_details=True,
    )


def load_function(spec: str) -> EvalFn:
    """Return the function `module:name`; what cannot be one is a usage error."""
    with command_errors(ImportingError, code="usage", status=2):
        with redirect_stdout(sys.stderr):  # what the module prints at import
            found = load_object(spec, option=OPTION, roots=[Path.cwd()])
        function = eval_fn(found, name=spec, option=OPTION)
    if function.needs_conversation:
        raise wrong_use(
            f"{OPTION} {spec!r}: takes messages; expected a rubric function "
            "(solution_str, ground_truth, extra_info)"
        )
    return function


def check_ground_truths(plan: JudgingPlan) -> None:
    """Refuse records that a ready scorer cannot compare with: a usage error."""
    refused = [(each, fault) for each in plan.records if (fault := _fault(plan, each))]
    if refused:
        record, what = refused[0]
        more = f" (and {len(refused) - 1} more records)" if len(refused) > 1 else ""
        raise wrong_use(f"--data {plan.data}: record {record.index}{more}: {what}")


def _fault(plan: JudgingPlan, record: Record) -> str | None:
    function = plan.function
    if function is None:
        return None
    refuse, refuse_row = function.refuse_ground_truth, function.refuse_row
    if refuse is not None and (fault := refuse(record.ground_truth)):
        return f"'ground_truth' {fault[0]}, and {function.name} compares with it{fault[1]}"
    if refuse_row is None or (said := refuse_row(record.own_truth, record.extra)) is None:
        return None
    return f"{said} ({function.name} reads it in 'extra_info')" if "row has no" in said else said


async def _call(plan: JudgingPlan, threads: CallThreads, record: Record) -> Mapping[str, Any]:
    """Return what the function says of a record; raise ProviderRequestError."""
    assert plan.function is not None
    name = plan.settings.name
    truth = record.own_truth if plan.function.reads_own_truth else record.ground_truth
    failed = partial(ProviderRequestError, name.provider, name.model, kind="eval_fn")
    with collect_reasons() as reasons:
        try:
            score = await plan.function.call(
                messages=(),
                solution_str=record.solution_str,
                ground_truth=truth,
                metadata=_extra_info(plan, record),
                run_sync=threads.run,
                row=lambda: record.name,
                source=plan.data.name,
            )
        except ProviderRequestError:
            raise
        except Exception as error:  # the user's code: data
            is_fatal = isinstance(error, MissingAPIKeyError)
            text = str(error) if is_fatal else named_error(error)
            raise failed(redact(text), fatal=is_fatal) from error
    explanation = "\n".join(map(redact, reasons))
    return {"score": score, "explanation": explanation, "clamped": bool(reasons.clamped)}


def _extra_info(plan: JudgingPlan, record: Record) -> dict[str, Any]:
    """Return the record's own fields, and over them what a judge is asked with.

    A record cannot say which key is used, nor where it is sent.
    """
    settings = plan.settings
    bounds = {"score_min": settings.score_min, "score_max": settings.score_max}
    others = {**plan.config.model_info, **bounds}
    info = {key: others.pop(key) for key in _OWN_FIELDS if key in others}
    if "api_key" not in info:
        provider = settings.name.provider
        usual, *_ = key_variables(provider) or (f"{provider.upper()}_API_KEY",)
        info.setdefault("api_key_env", usual)
    of_record = {"original_input": record.original_input, "metadata": record.metadata}
    info |= {key: value for key, value in of_record.items() if value is not None}
    overrides = {"model_info_overrides": others} if others else {}
    return {**record.extra, **info, **overrides, "rubric": plan.config.rubric}
