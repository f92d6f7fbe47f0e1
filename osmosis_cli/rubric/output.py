"""The results of a rubric session, as a JSON document and as lines for the terminal.

Knows what a session and an earlier one found; asks no judge.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Any

from osmosis_ai.escaping import printable
from pytest_osmosis.escaping import counted, dollars

from ..errors import wrong_use
from .config import RubricConfig
from .judging import Judgement, JudgingPlan, statistics_of

EXPLANATION_WIDTH = 80
_SEPARATORS = ("/", os.sep)
_FIGURES = {
    "average": "average",
    "variance": "variance",
    "stdev": "standard deviation",
    "min": "min",
    "max": "max",
}
"""Names of figures in the document, and in the terminal."""
_COUNTS = ("success_count", "failure_count", "total_runs")


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """The statistics of an earlier session, to compare with."""

    path: Path
    statistics: Mapping[str, float]

    def document(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """Return the comparison as the result file has it."""
        return {
            "source_path": str(self.path),
            "baseline_statistics": dict(self.statistics),
            "delta_statistics": {
                name: now[name] - before
                for name, before in self.statistics.items()
                if now[name] is not None
            },
        }

    def lines(self, now: Mapping[str, Any]) -> Iterator[str]:
        """Yield the comparison for the terminal."""
        yield f"compared with {printable(str(self.path))}"
        for name, text in _FIGURES.items():
            then = self.statistics.get(name)
            if then is not None and now[name] is not None:
                yield f"  {text:<19} {then:.4g} -> {now[name]:.4g} ({now[name] - then:+.4g})"


def load_baseline(path: Path) -> EarlierResult:
    """Return the statistics in a result file; what holds none is a usage error."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise wrong_use(f"--baseline {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise wrong_use(f"--baseline {path}: is not JSON") from None
    found = document.get("overall_statistics", document) if isinstance(document, dict) else {}
    figures = {name: found.get(name) for name in (*_FIGURES, *_COUNTS)} if found else {}
    statistics = {
        name: value
        for name, value in figures.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    if not statistics:
        raise wrong_use(
            f"--baseline {path}: has no 'overall_statistics'; "
            "expected a result file of osmosis eval rubric"
        )
    return EarlierResult(path, statistics)


def result_path(output: str | None, rubric_id: str, now: float) -> Path:
    """Return the file to write: the named one, or a new one in the named directory or the cache."""
    from pytest_osmosis.storage.atomic_write import is_special

    name = f"rubric_eval_result_{int(now)}"
    if output is None:
        return _unused(_cache() / "eval_result" / _safe(rubric_id), name)
    path = Path(output)
    if is_special(path):
        return path
    if output.endswith(_SEPARATORS) or path.is_dir() or not path.suffix:
        return _unused(path, name)
    return path


def document_of(
    config: RubricConfig,
    plan: JudgingPlan,
    runs: Sequence[Judgement],
    *,
    data: Path,
    baseline: EarlierResult | None = None,
) -> dict[str, Any]:
    """Return the result file's content: every run, and statistics of each record and of all."""
    settings = plan.settings
    statistics = statistics_of(runs)
    document = {
        "generated_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "rubric_id": config.id,
        "rubric_source": config.place,
        "title": config.title,
        "rubric": config.rubric,
        "provider": settings.name.provider,
        "model": settings.name.model,
        "params": dict(settings.params),
        "score_min": settings.score_min,
        "score_max": settings.score_max,
        "eval_fn": None if plan.function is None else plan.function.function.name,
        "config_path": config.source,
        "data_path": str(data),
        "number": plan.runs,
        "complete": all(run.score is not None for run in runs),
        "counts": counts(runs),
        "overall_statistics": statistics,
        **totals(runs),
        "records": [_record_document(group) for group in by_record(runs)],
    }
    if baseline is not None:
        document["baseline_comparison"] = baseline.document(statistics)
    return document


def counts(runs: Sequence[Judgement]) -> dict[str, int]:
    """Return how many runs were scored, failed, and never started."""
    scored = sum(run.score is not None for run in runs)
    failed = sum(run.error is not None for run in runs)
    not_run = len(runs) - scored - failed
    return {"runs": len(runs), "scored": scored, "failed": failed, "not_run": not_run}


def totals(runs: Sequence[Judgement]) -> dict[str, Any]:
    """Return tokens and cost of the scored runs; None where any of them is unknown."""
    results: list[Any] = [run.result for run in runs if run.result is not None]
    sums: dict[str, Any] = {}
    for name in ("prompt_tokens", "completion_tokens", "cost_usd"):
        values = [result[name] for result in results]
        sums[name] = sum(values) if values and None not in values else None
    return sums


def by_record(runs: Sequence[Judgement]) -> Iterator[list[Judgement]]:
    """Yield the runs of each record."""
    for _, group in groupby(runs, key=lambda run: run.record.index):
        yield list(group)


def lines(
    config: RubricConfig,
    plan: JudgingPlan,
    runs: Sequence[Judgement],
    baseline: EarlierResult | None = None,
) -> Iterator[str]:
    """Yield the lines for the terminal: each run, then the statistics."""
    for of_record in by_record(runs):
        yield printable(of_record[0].record.name)
        for run in of_record:
            yield f"  run {run.number:<3} {_run_line(run)}"
    yield ""
    by = plan.settings.name if plan.function is None else plan.function.function.name
    amount = f"{counted(len(plan.records), 'record')} x {counted(plan.runs, 'run')}"
    yield f"{printable(config.id)}: {by}, {amount}"
    yield _statistics_line(runs)
    spent = totals(runs)
    if spent["prompt_tokens"] is not None:
        tokens = spent["prompt_tokens"] + (spent["completion_tokens"] or 0)
        cost = "price unknown" if spent["cost_usd"] is None else dollars(spent["cost_usd"])
        yield f"{tokens} tokens, {cost}"
    if baseline is not None:
        yield from baseline.lines(statistics_of(runs))


def _run_line(run: Judgement) -> str:
    if run.error is not None:
        return f"error    {printable(run.error.detail)}"
    if run.result is None:
        return "not run"
    text = " ".join(run.result["explanation"].split()) or "(no explanation)"
    short = text if len(text) <= EXPLANATION_WIDTH else text[: EXPLANATION_WIDTH - 3] + "..."
    clamped = " (clamped)" if run.result["clamped"] else ""
    return f"{run.result['score']:<8g} {printable(short)}{clamped}"


def _statistics_line(runs: Sequence[Judgement]) -> str:
    statistics, number = statistics_of(runs), counts(runs)
    if statistics["average"] is None:
        return f"no scores ({number['failed']} failed, {number['not_run']} not run)"
    line = "  ".join(f"{text} {statistics[name]:.4g}" for name, text in _FIGURES.items())
    if number["scored"] < number["runs"]:
        line += f"  (over {number['scored']} of {number['runs']} runs)"
    return line


def _record_document(runs: list[Judgement]) -> dict[str, Any]:
    record = runs[0].record
    given = {key: value for key, value in record.mask().items() if value is not None}
    given.pop("index")
    return {
        "id": record.name,
        "record_index": record.index,
        "conversation_id": record.conversation_id,
        "input_record": given,
        "statistics": statistics_of(runs),
        "runs": [run.document() for run in runs],
    }


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "osmosis"


def _safe(rubric_id: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", rubric_id)[:100]
    return name if name.strip(".") else "rubric"


def _unused(directory: Path, name: str) -> Path:
    path = directory / f"{name}.json"
    number = 2
    while path.exists():
        path = directory / f"{name}-{number}.json"
        number += 1
    return path
