"""What a platform says of runs, as values: a field that is absent, or of another type, is unknown.

Unknown is None, or empty where there are several. The text is the server's: escape it before it
gets into a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

ENDED = frozenset({"finished", "failed", "stopped", "crashed", "killed"})
"""Statuses in which a run stays."""
_FRACTION = re.compile(r"\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run, as a list and a detail tell of it."""

    id: str | None = None
    name: str | None = None
    status: str | None = None
    created_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    creator_name: str | None = None
    platform_url: str | None = None
    """Of its page."""
    model: str | None = None
    dataset: str | None = None
    rollout: str | None = None
    entrypoint: str | None = None
    branch: str | None = None
    """The one whose newest commit was asked for."""
    commit_sha: str | None = None
    problem: str | None = None
    """Why it failed."""
    interruptions: int | None = None
    """How often the platform was killed while it executed the run."""
    is_local: bool = False
    """Whether it ran on a user's machine, and was uploaded."""
    config: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether the run stays as it is; also with a status that is not known here."""
        return self.status in ENDED or self.completed_at is not None

    @property
    def label(self) -> str:
        """Its name, else its id."""
        return self.name or self.id or "?"


def run_record(answer: Mapping[str, Any], key: str) -> RunRecord:
    """Return the run of an answer: as it is in a list, or below `key` in a detail."""
    inner = answer.get(key)
    head = inner if isinstance(inner, dict) else answer
    experiment = table_of(table_of(answer, "config"), "experiment_config")
    names = {name: _name(answer, name) or _name(head, name) for name in ("dataset", "rollout")}
    return RunRecord(
        **{name: text_of(head, name) for name in _TEXTS},
        **{name: named or text_of(experiment, name) for name, named in names.items()},
        model=_name(answer, "model") or _name(head, "model") or text_of(experiment, "model_path"),
        entrypoint=text_of(answer, "entrypoint") or text_of(experiment, "entrypoint"),
        branch=text_of(answer, "branch") or text_of(experiment, "branch"),
        commit_sha=text_of(answer, "commit_sha") or text_of(experiment, "commit_sha"),
        problem=_problem(head) or _problem(table_of(answer, "results")),
        is_local=head.get("is_local") is True,
        interruptions=count_of(head, "interruptions"),
        config=table_of(answer, "config"),
        env=table_of(answer, "env_config"),
    )


_TEXTS = (
    "id", "name", "status", "created_at", "started_at", "completed_at", "creator_name",
    "platform_url",
)  # fmt: skip


def moment_of(text: str | None) -> datetime | None:
    """Return a time of the wire, in UTC where it has no zone; None when it is none."""
    if not text:
        return None
    try:
        # Python 3.10 can parse neither `Z` nor fractions of other than 3 or 6 digits.
        text = _FRACTION.sub(lambda digits: f"{digits[0]:0<7.7}", text, count=1)
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def text_of(entry: Mapping[str, Any], name: str) -> str | None:
    """Return a text that is not empty, else None."""
    text = entry.get(name)
    return text if isinstance(text, str) and text else None


def number_of(entry: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number, else None."""
    number = entry.get(name)
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    return number if math.isfinite(number) else None


def tables_of(entry: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the tables of a list, none where there is no list."""
    items = entry.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def table_of(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table, empty where there is none."""
    table = entry.get(name)
    return table if isinstance(table, dict) else {}


def count_of(entry: Mapping[str, Any], name: str) -> int | None:
    """Return an integer that is not negative, else None."""
    count = entry.get(name)
    return count if type(count) is int and count >= 0 else None


def _name(entry: Mapping[str, Any], name: str) -> str | None:
    """Return the name of an object, which may stand there by itself."""
    return text_of(table_of(entry, name), "name") or text_of(entry, name)


def _problem(entry: Mapping[str, Any]) -> str | None:
    texts = (text_of(entry, name) for name in ("error", "error_message", "failure_reason"))
    return next(filter(None, texts), None)
