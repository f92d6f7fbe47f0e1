"""A file of recorded answers to the records that a rubric is to judge.

The rows are read as strictly as a dataset's, and every wrong one is named. Knows no rubric but by
its id, and asks no judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from osmosis_ai.messages import text_of
from pytest_osmosis.dataset.decoding import decode, decode_numbers, json_type
from pytest_osmosis.dataset.errors import DatasetError, EmptyDataset, Problems, RecordError, quote
from pytest_osmosis.dataset.formats import RECORD_SUFFIXES_SHOWN, DatasetFormat, RowSource
from pytest_osmosis.dataset.opening import open_dataset
from pytest_osmosis.rollouts.failure_text import conversation

from .config import mask_secrets

__all__ = ["DatasetError", "EmptyDataset", "Record", "load_records"]

_TEXTS = ("conversation_id", "rubric_id", "original_input")
_MAPPINGS = ("metadata", "extra_info")
_KEY_FIELDS = frozenset({"api_key", "api_key_env", "model_info_overrides"})
"""Of `extra_info`: what says how to ask is neither for the judge to read nor for data to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One recorded answer."""

    index: int
    """Its place among the records of the file, from 0."""
    solution_str: str
    """What is judged; of a conversation its last assistant message."""
    conversation_id: str | None
    rubric_id: str | None
    original_input: str | None
    ground_truth: Any
    """Any value of JSON; a number is its text, as it is written."""
    own_truth: Any
    """The same with its own type."""
    metadata: Mapping[str, Any] | None
    extra_info: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """What to call it: its conversation, else its place."""
        return self.conversation_id or f"record {self.index}"

    def mask(self) -> dict[str, Any]:
        """Everything about it that may be printed: all but keys."""
        shown = {**asdict(self), "extra_info": mask_secrets(self.extra_info)}
        del shown["own_truth"]
        return shown

    @property
    def extra(self) -> dict[str, Any]:
        """What of `extra_info` does not say how to ask."""
        return {k: v for k, v in (self.extra_info or {}).items() if k not in _KEY_FIELDS}

    def context(self) -> dict[str, Any] | None:
        """Return what of `metadata` and `extra_info` the judge is shown."""
        shown = {"extra_info": mask_secrets(self.extra)} if self.extra else {}
        return {**(self.metadata or {}), **shown} or None


def load_records(path: Path) -> list[Record]:
    """Return every record of the file; DatasetError names the wrong ones."""
    file, kind = open_dataset(path)
    with file, closing(_source(file, kind, path)) as source:
        problems = Problems(path, source.unit)
        records = list(_records(source, problems))
        if found := problems.error():
            raise found
    if not records:
        raise EmptyDataset(f"{quote(path)}: has no records")
    return records


def _source(file: BinaryIO, kind: DatasetFormat, path: Path) -> RowSource:
    if kind.holds_records:
        return kind.open(file, path)
    file.close()
    raise DatasetError(
        f"{quote(path)}: records are read from {RECORD_SUFFIXES_SHOWN}, not {kind.suffix}"
    )


def _records(source: RowSource, problems: Problems) -> Iterator[Record]:
    for index, (place, _, raw) in enumerate(source.scan(None, 0, None, problems)):
        try:
            row = decode(raw)
            truth = row.get("ground_truth")
            if type(truth) in (int, float):
                truth = str(decode_numbers(raw)["ground_truth"])
            yield _record(index, row, None if truth == "" else truth)
        except RecordError as error:
            problems.add(place, str(error))


def _record(index: int, row: dict[str, Any], truth: Any) -> Record:
    solution, rest = row.get("solution_str"), None
    if row.get("messages") is not None:
        answer, rest = _conversation(row["messages"])
        solution = answer if solution is None else solution
    if solution is None:
        columns = ", ".join(row) or "none"
        raise RecordError(f"'solution_str' or 'messages' is missing (columns: {columns})")
    if not isinstance(solution, str) or not solution.strip():
        what = "is empty" if isinstance(solution, str) else f"is {json_type(solution)}"
        raise RecordError(f"'solution_str' {what}; expected a non-empty string")
    texts = {key: _value(row, key, str, "a string: quote it") or None for key in _TEXTS}
    texts["original_input"] = texts["original_input"] or rest
    mappings = {key: _value(row, key, dict, "an object") for key in _MAPPINGS}
    own = None if truth is None else row["ground_truth"]
    return Record(
        index=index,
        solution_str=solution,
        ground_truth=truth,
        own_truth=own,
        **texts,
        **mappings,
    )


def _value(row: dict[str, Any], key: str, kind: type, expected: str) -> Any:
    value = row.get(key)
    if value is None or isinstance(value, kind):
        return value
    raise RecordError(f"{key!r} is {json_type(value)}; expected {expected}")


def _conversation(messages: object) -> tuple[str, str | None]:
    """Return the text of the last assistant message, and the other messages as reports do."""
    if not isinstance(messages, list):
        raise RecordError(f"'messages' is {json_type(messages)}; expected a list of messages")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RecordError(f"'messages' {number} has no role; expected {{role, content}}")
    places = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
    if not places:
        raise RecordError("'messages' holds no assistant message to judge")
    answer = text_of(messages[places[-1]].get("content"))
    if not answer.strip():
        raise RecordError("the last assistant message of 'messages' has no text to judge")
    others = [one for number, one in enumerate(messages) if number != places[-1]]
    return answer, conversation(others, limit=None) or None
