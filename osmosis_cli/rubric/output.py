"""The results of a rubric session, as a JSON document and as lines for the terminal.

Knows what a session and an earlier one gave; asks no judge.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain, count
from pathlib import Path
from statistics import mean, pvariance
from typing import Any

from osmosis_ai.escaping import printable
from osmosis_ai.models.errors import clip
from pytest_osmosis.escaping import clamped_scores, counted, dollars

from ..errors import wrong_use
from .judging import JudgingPlan
from .records import Record

Run = Mapping[str, Any]
"""A run of a record, as the result file has it."""
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


def load_baseline(path: Path) -> dict[str, float]:
    """Return the statistics in a result file; what holds none is a usage error."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise wrong_use(f"--baseline {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise wrong_use(f"--baseline {path}: is not JSON") from None
    found = document.get("overall_statistics", document) if isinstance(document, dict) else {}
    statistics = {
        name: found[name]
        for name in (*_FIGURES, *_COUNTS)
        if isinstance(found, dict) and isinstance(found.get(name), int | float)
    }
    if not statistics or not all(map(math.isfinite, statistics.values())):
        raise wrong_use(
            f"--baseline {path}: has no 'overall_statistics'; "
            "expected a result file of osmosis eval rubric"
        )
    return statistics


def result_path(output: str | None, rubric_id: str, now: float) -> Path:
    """Return the file to write: the named one, or a new one in the named directory or the cache."""
    from pytest_osmosis.storage.atomic_write import is_special

    if output is None:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", rubric_id)[:100]
        folder = Path(base).expanduser() / "osmosis" / "eval_result"
        folder /= name if name.strip(".") else "rubric"
    else:
        folder = Path(output)
        is_folder = output.endswith(_SEPARATORS) or folder.is_dir() or not folder.suffix
        if is_special(folder) or not is_folder:
            return folder
    endings = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"rubric_eval_result_{int(now)}{ending}.json" for ending in endings)
    return next(path for path in paths if not path.exists())


def document_of(
    plan: JudgingPlan,
    runs: Sequence[Run],
    *,
    data: Path,
    compared_with: tuple[Path, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Return the result file's content: every run, and statistics of each record and of all."""
    config, settings = plan.config, plan.settings
    statistics, states = _statistics(runs), Counter(run["status"] for run in runs)
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
        "eval_fn": None if plan.function is None else plan.function.name,
        "config_path": config.source,
        "data_path": str(data),
        "number": plan.runs,
        "complete": states["success"] == len(runs),
        "counts": {
            "runs": len(runs),
            "scored": states["success"],
            "failed": states["error"],
            "not_run": states["not_run"],
            "clamped": sum(bool(run["clamped"]) for run in runs),
        },
        "overall_statistics": statistics,
        **{name: _total(runs, name) for name in ("prompt_tokens", "completion_tokens", "cost_usd")},
        "records": [
            _record_document(record, runs[place * plan.runs :][: plan.runs])
            for place, record in enumerate(plan.records)
        ],
    }
    if compared_with is not None:
        path, then = compared_with
        document["baseline_comparison"] = {
            "source_path": str(path),
            "baseline_statistics": dict(then),
            "delta_statistics": {
                name: statistics[name] - before
                for name, before in then.items()
                if statistics[name] is not None
            },
        }
    return document


def _record_document(record: Record, runs: Sequence[Run]) -> dict[str, Any]:
    given = {key: value for key, value in record.mask().items() if value is not None}
    return {
        "id": record.name,
        "record_index": given.pop("index"),
        "conversation_id": record.conversation_id,
        "input_record": given,
        "statistics": _statistics(runs),
        "runs": list(runs),
    }


def _statistics(runs: Sequence[Run]) -> dict[str, Any]:
    """Return average, variance and the rest over the runs that have a score; None without any.

    The variance is the population's, and exactly 0.0 where all scores are the same.
    """
    scores = _known(runs, "score")
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


def _total(runs: Sequence[Run], name: str) -> Any:
    """Return tokens or cost of the scored runs; None where any of them is unknown."""
    values = _known(runs, name)
    return sum(values) if values and len(values) == len(_known(runs, "score")) else None


def _known(runs: Sequence[Run], name: str) -> list[Any]:
    return [run[name] for run in runs if run[name] is not None]


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for the terminal: each run, then the statistics."""
    for record in document["records"]:
        yield printable(record["id"])
        for run in record["runs"]:
            yield f"  run {run['run_index']:<3} {_run_line(run)}"
    yield ""
    by = document["eval_fn"] or f"{document['provider']}/{document['model']}"
    records, runs = counted(len(document["records"]), "record"), counted(document["number"], "run")
    yield f"{printable(document['rubric_id'])}: {by}, {records} x {runs}"
    figures, number = document["overall_statistics"], document["counts"]
    if not number["scored"]:
        yield f"no scores ({number['failed']} failed, {number['not_run']} not run)"
    else:
        rest = f"  (over {number['scored']} of {number['runs']} runs)"
        yield "  ".join(f"{text} {figures[name]:.4g}" for name, text in _FIGURES.items()) + (
            "" if document["complete"] else rest
        )
    if number["clamped"]:
        yield clamped_scores(number["clamped"])
    if document["prompt_tokens"] is not None:
        tokens = document["prompt_tokens"] + (document["completion_tokens"] or 0)
        cost = "price unknown" if document["cost_usd"] is None else dollars(document["cost_usd"])
        yield f"{tokens} tokens, {cost}"
    if compared := document.get("baseline_comparison"):
        yield f"compared with {printable(compared['source_path'])}"
        for name, text in _FIGURES.items():
            then = compared["baseline_statistics"].get(name)
            if then is not None and figures[name] is not None:
                now = figures[name]
                yield f"  {text:<19} {then:.4g} -> {now:.4g} ({now - then:+.4g})"


def _run_line(run: Run) -> str:
    if run["status"] == "not_run":
        return "not run"
    if run["status"] == "error":
        return f"error    {printable(run['error'])}"
    text = clip(run["explanation"], EXPLANATION_WIDTH) or "(no explanation)"
    clamped = " (clamped)" if run["clamped"] else ""
    return f"{run['score']:<8g} {text}{clamped}"
