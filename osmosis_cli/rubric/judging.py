"""Many records before one judge, so many at once; what fails becomes data.

A failure that no other record can escape (wrong key, unknown model, no quota) ends the asking.
Knows neither files nor terminals.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from osmosis_ai.rubric.errors import ProviderRequestError
from osmosis_ai.rubric.evaluation import case_of
from osmosis_ai.rubric.judge import Judge, RewardRubricRunResult
from osmosis_ai.rubric.settings import JudgeSettings

from .records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One judgement of one record."""

    record: Record
    number: int
    """From 1."""
    started_at: str | None = None
    """None: never started."""
    duration_ms: float = 0.0
    result: RewardRubricRunResult | None = None
    error: ProviderRequestError | None = None

    @property
    def score(self) -> float | None:
        """The score, None when there is none."""
        return None if self.result is None else self.result["score"]

    def document(self) -> dict[str, Any]:
        """As the result file has it."""
        whole: dict[str, Any] = {
            "run": self.number,
            "started_at": self.started_at,
            "duration_ms": round(self.duration_ms),
            "score": self.score,
            "error": _error_document(self.error),
        }
        if self.result is not None:
            kept = ("explanation", "clamped", "cost_usd", "retries", "raw")
            tokens = ("prompt_tokens", "completion_tokens")
            whole.update({key: self.result[key] for key in (*kept, *tokens)})  # type: ignore[literal-required]
        return whole


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the scores that there are; None where there is none."""

    average: float | None
    variance: float | None
    """Of the population, as is the standard deviation."""
    standard_deviation: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be judged, and how."""

    rubric: str
    settings: JudgeSettings
    records: Sequence[Record]
    runs: int
    batch_size: int

    def __iter__(self) -> Iterator[Run]:
        for record in self.records:
            for number in range(1, self.runs + 1):
                yield Run(record=record, number=number)

    def __len__(self) -> int:
        return len(self.records) * self.runs


async def judge_all(plan: Plan, done: Callable[[Run], None]) -> list[Run]:
    """Return every run in the order of the plan; `done` hears of each as it ends."""
    waiting = enumerate(plan)
    runs = list(plan)
    stopped = asyncio.Event()

    async def work(judge: Judge) -> None:
        for place, run in waiting:
            if stopped.is_set():
                return
            runs[place] = ended = await _judged(judge, plan, run)
            done(ended)
            if ended.error is not None and ended.error.fatal:
                stopped.set()

    async with Judge(plan.settings) as judge:
        workers = [asyncio.ensure_future(work(judge)) for _ in range(plan.batch_size)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return runs


def statistics_of(runs: Sequence[Run]) -> Statistics:
    """Average, variance and the rest over the runs that have a score."""
    scores = [run.score for run in runs if run.score is not None]
    if not scores:
        return Statistics(None, None, None, None, None)
    average = math.fsum(scores) / len(scores)
    variance = math.fsum((score - average) ** 2 for score in scores) / len(scores)
    return Statistics(average, variance, math.sqrt(variance), min(scores), max(scores))


async def _judged(judge: Judge, plan: Plan, run: Run) -> Run:
    record = run.record
    case = case_of(
        plan.settings,
        plan.rubric,
        record.solution_str,
        ground_truth=record.ground_truth,
        metadata=record.context(),
    )
    if record.original_input is not None:
        case = replace(case, original_input=record.original_input)
    started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    started = time.perf_counter()
    result: RewardRubricRunResult | None = None
    failure: ProviderRequestError | None = None
    try:
        result = await judge.judge(case)
    except ProviderRequestError as error:
        failure = error
    duration_ms = (time.perf_counter() - started) * 1000.0
    return replace(
        run, started_at=started_at, duration_ms=duration_ms, result=result, error=failure
    )


def _error_document(error: ProviderRequestError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"kind": error.kind, "status": error.status, "message": error.detail}
