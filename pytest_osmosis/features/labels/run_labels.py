"""What people say of an evaluation: which of its runs are right or wrong, a note, and tags.

Kept beside what it is about: `labels.json` in the folder of a kept evaluation, `NAME.labels` beside
a report. Knows nothing of pages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...run_result import RunId, RunResult
from ...storage.atomic_write import write_whole

TEXT_LIMIT = 10_000
"""Characters of a note."""
LOCK_TIMEOUT_S = 10.0


class UnreadableLabels(Exception):
    """A file of labels cannot be read; `str()` names it and says why."""


@dataclass(frozen=True, slots=True)
class RunLabel:
    """What a person says of one run."""

    is_right: bool | None
    """None: there is a note alone."""
    note: str = ""
    started_at: float | None = None
    """When the run began that it is of: a run that took its place has no label."""
    rubrics: Mapping[str, str] = field(default_factory=dict)
    """The digest of the rubric by which its judges had judged, by eval function."""

    def is_about(self, run: RunResult, eval_fn: str) -> bool:
        """Whether an eval function judges the run now by the text that it had then."""
        return self.rubrics.get(eval_fn) == run.rubrics.get(eval_fn)

    def is_of(self, run: RunResult) -> bool:
        """Whether it is of this very run."""
        return self.started_at is None or self.started_at == run.started_at


@dataclass(frozen=True, slots=True)
class Labels:
    """What people say of an evaluation and of its runs."""

    note: str = ""
    tags: tuple[str, ...] = ()
    runs: Mapping[RunId, RunLabel] = field(default_factory=dict)

    def with_run(self, run: RunId, label: RunLabel) -> Labels:
        """Return the labels with that of one run; one that says nothing takes it away."""
        others = {each: known for each, known in self.runs.items() if each != run}
        said = {} if label.is_right is None and not label.note else {run: label}
        return replace(self, runs=others | said)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        runs = [{**run._asdict(), **asdict(label)} for run, label in self.runs.items()]
        return {"note": self.note, "tags": list(self.tags), "runs": runs}


def labels_file(path: Path) -> Path:
    """Return the file of the labels of a kept evaluation's folder, or of a report."""
    return path / "labels.json" if path.is_dir() else path.with_name(f"{path.name}.labels")


def read_labels(paths: Sequence[Path]) -> Labels:
    """Return the labels beside a kept evaluation and its report; what the first says counts.

    Raises:
        UnreadableLabels: when a file is damaged.
    """
    found = [_read(labels_file(path)) for path in paths]
    return Labels(
        next((each.note for each in found if each.note), ""),
        tuple(dict.fromkeys(tag for each in found for tag in each.tags)),
        {run: label for each in reversed(found) for run, label in each.runs.items()},
    )


def change_labels(path: Path, change: Callable[[Labels], Labels]) -> None:
    """Change the labels beside a path, whole or not at all; one process at a time."""
    from filelock import FileLock, Timeout  # imports asyncio

    file = labels_file(path)
    lock = FileLock(file.with_name(f".{file.name}.lock"), timeout=LOCK_TIMEOUT_S, mode=0o600)
    try:
        with lock:
            changed = change(_read(file)).to_json()
            write_whole(file, json.dumps(changed, indent=1).encode(), mode=0o600)
    except Timeout:
        raise UnreadableLabels(f"{file}: another process writes it; try again") from None


def _read(file: Path) -> Labels:
    try:
        data = json.loads(file.read_bytes())
        runs = {
            RunId(str(each["suite"]), int(each["row_index"]), int(each["run_index"])): RunLabel(
                _judgement(each["is_right"]),
                str(each["note"]),
                each["started_at"],
                dict(each.get("rubrics", {})),
            )
            for each in data["runs"]
        }
        return Labels(str(data["note"]), tuple(map(str, data["tags"])), runs)
    except FileNotFoundError:
        return Labels()
    except OSError as error:
        raise UnreadableLabels(f"{file}: cannot be read: {error.strerror}") from None
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = f"{file}: is no file of labels ({error}); correct or delete it"
        raise UnreadableLabels(why) from None


def _judgement(value: object) -> bool | None:
    """Return what is no text or number: any of these but 0 and "" would pass for right."""
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"is_right is true, false or null, not {json.dumps(value)}")
