"""Submitted runs as people read them: rows of a list, a run in full, lines of its log.

Every text of the server is escaped here. Times are relative; the exact ones are in `--json`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from osmosis_ai.escaping import printable
from osmosis_ai.models.retry import in_words
from osmosis_ai.platform.answers import (
    ENDED,
    RunRecord,
    count_of,
    moment_of,
    number_of,
    table_of,
    tables_of,
    text_of,
)
from osmosis_ai.platform.server_text import one_line
from pytest_osmosis.escaping import counted, escape_control_chars
from pytest_osmosis.reports.line_markup import Style

UNKNOWN = "unknown"
_MONTH_S = 30 * 86400
_HEADER = ("name", "status", "model", "dataset", "rollout", "created", "by")
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)
_MOST = 200
"""Characters of a name that are shown."""
LEAST_FIRST = ("by", "rollout", "dataset", "model")
"""Columns that a narrow terminal does without, in this order."""


def age(text: str | None, now: datetime) -> str:
    """Return how long ago a time of the wire is, or its date when that is a month and more."""
    moment = moment_of(text)
    if moment is None:
        return UNKNOWN
    seconds = (now - moment).total_seconds()
    if seconds >= _MONTH_S:
        return f"{moment:%Y-%m-%d}"
    return "just now" if seconds < 1 else f"{in_words(seconds)} ago"


def run_rows(runs: Iterable[RunRecord], now: datetime) -> list[tuple[str, ...]]:
    """Return the table of runs, its header first."""
    rows: list[tuple[str, ...]] = [_HEADER]
    for run in runs:
        status = f"{run.status}, local" if run.is_local else run.status
        texts = (status, run.model, run.dataset, run.rollout)
        created = age(run.created_at, now)
        rows.append((render(run.label), *map(render, texts), created, render(run.creator_name)))
    return rows


def metric_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the verdict and the figures that are known of an answer about metrics."""
    if verdict := text_of(metrics, "verdict"):
        yield f"verdict: {printable(verdict)}"
    for each in tables_of(metrics, "gates"):
        outcome, gate, sentence = (
            text_of(each, name) or "" for name in ("outcome", "gate", "sentence")
        )
        yield printable(f"gate  {gate}  {outcome.upper()}: {sentence}")
    if counts := list(_counts(metrics)):
        yield ", ".join(counts)
    overview, statistics = table_of(metrics, "overview"), table_of(metrics, "reward_stats")
    if (rate := number_of(overview, "pass_rate")) is not None:
        least = number_of(overview, "pass_threshold")
        threshold = "" if least is None else f" (a score of {least:g} or more passes)"
        yield f"pass rate {rate:.1%}{threshold}"
    at_k = [
        (count_of(each, "k"), number_of(each, "value")) for each in tables_of(metrics, "pass_at_k")
    ]
    if known := [f"pass@{k} {value:.3g}" for k, value in at_k if None not in (k, value)]:
        yield ", ".join(known)
    values = {name: number_of(statistics, name) for name in ("mean", "median", "std", "min", "max")}
    if figures := [f"{name} {value:.3g}" for name, value in values.items() if value is not None]:
        yield f"reward: {', '.join(figures)}"
    if tokens := count_of(overview, "tokens_used"):
        yield f"{tokens:,} tokens"


def progress_text(run: RunRecord, metrics: Mapping[str, Any] | None, now: datetime) -> str:
    """Return one line about a run that may still continue."""
    parts = [f"{render(run.label)}  {render(run.status)}"]
    counts = _counts(metrics or {})
    parts += [part for part in counts if not part.endswith(("graded", "skipped"))]
    since = moment_of(run.started_at) or moment_of(run.created_at)
    if since is not None:
        until = moment_of(run.completed_at) or now
        parts.append(in_words(max(0.0, (until - since).total_seconds())))
    return "  ".join(parts)


def log_lines(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines on the screen of one line of a log, its time in the zone of this machine."""
    moment = moment_of(text_of(line, "timestamp"))
    when = f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if moment else "-" * 19
    head = f"{when}  {render(text_of(line, 'level') or '-'):7}  "
    name = text_of(line, "step")
    step = f"{render(name)}: " if name else ""
    first, *rest = escape_control_chars(text_of(line, "message") or "").splitlines() or [""]
    yield f"{head}{step}{first}".rstrip()
    for further in [*rest, *_details(line.get("details"))]:
        yield " " * len(head) + further


def render(text: str | None) -> str:
    """Return text of the server on one line, cut where it is long; `unknown` without any."""
    return one_line(text, _MOST) if text and text.strip() else UNKNOWN


def copyable(run: RunRecord) -> str:
    """Return what names a run in a command that people copy: nothing that a shell acts on."""
    names = (name for name in (run.name, run.id) if name and _PLAIN.fullmatch(name))
    return next(names, None) or shlex.quote(render(run.label))


def styled(status: str | None) -> str | tuple[str, Style]:
    """Return a status, and green or red where the run has ended, for `say`."""
    if status not in ENDED:
        return render(status)
    return status, "good" if status == "finished" else "bad"


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(timezone.utc)


def run_facts(run: RunRecord, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a run but its figures, each fact with its name."""
    if run.problem:
        yield "problem", run.problem
    yield "id", render(run.id)
    yield "created", f"{age(run.created_at, now)} by {render(run.creator_name)}"
    if run.started_at:
        yield "started", age(run.started_at, now)
    if run.interruptions:
        yield "interrupted", counted(run.interruptions, "time")
    if run.completed_at:
        yield "ended", age(run.completed_at, now) + _duration(run)
    yield "model", render(run.model)
    yield "dataset", render(run.dataset)
    yield "rollout", render(run.rollout) + (f", {render(run.entrypoint)}" if run.entrypoint else "")
    if run.branch:
        yield "branch", render(run.branch)
    if run.is_local:
        yield "ran", "on a user's machine; the platform computed its figures and gates from scores"
    yield (
        "commit",
        render(run.commit_sha) if run.commit_sha else "unknown" if run.is_local else "not pinned",
    )
    for section, values in run.config.items():
        if section != "experiment_config" and isinstance(values, dict) and values:
            yield section.removesuffix("_config"), _settings(values)
    if run.env:
        yield "env", ", ".join(run.env)
    if run.platform_url:
        yield "page", run.platform_url


def _counts(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many samples there are of each kind; nothing where all of them are 0."""
    overview = table_of(metrics, "overview")
    names = ("completed_samples", "total_samples", "graded", "passed", "failed", "skipped")
    done, total, *kinds = counts = [count_of(overview, name) for name in names]
    if not any(counts):
        return
    if done is not None and total is not None:
        yield f"{done:,}/{total:,} samples"
    for name, count in zip(names[2:], kinds, strict=True):
        if count is not None:
            yield f"{count:,} {name}"


def _duration(run: RunRecord) -> str:
    started, ended = moment_of(run.started_at), moment_of(run.completed_at)
    if started is None or ended is None or ended < started:
        return ""
    return f", after {in_words((ended - started).total_seconds())}"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!s} {_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_value, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _details(details: Any) -> list[str]:
    if not details:
        return []
    text = json.dumps(details, ensure_ascii=False)
    return [escape_control_chars(text)]
