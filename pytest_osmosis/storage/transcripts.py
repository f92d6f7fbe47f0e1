"""The conversations of the runs, written by the process that ran them, before its result is sent.

Each process of a session has a file of its own, so a line is never mixed with another's; a line
holds the run's result too, so that a run is not lost when the controller dies before it knew of it.
Conversations are read one at a time and never held. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run_result import RolloutRecord
from .excerpt import encode, excerpt, masked, plain
from .group_commit import AppendFile
from .lines import RowRun, add_checksum, result_of, verify_checksum

FOLDER = "conversations"
SIZE_LIMIT = 8 << 20
"""Bytes of a conversation that is kept as it was; of a longer one there is an excerpt."""
_KEY = re.compile(rb'\{"row":(\d+),"run":(\d+),"whole":([01]),')


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the processes of a session write the transcripts of a suite."""

    folder: str
    session: int
    has_unscored: bool = False
    """Whether earlier sessions left runs there that lack nothing but what a judge would say."""


class TranscriptWriter:
    """One process's files of a session, one a suite; each is made when its first run ends."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._paths: dict[str, Path] = {}
        self._files: dict[str, AppendFile] = {}

    def begin(self, suite: str, there: RunFolder) -> None:
        """Keep the suite's conversations there."""
        name = f"{there.session:04}-{self._process}.jsonl"
        self._paths[suite] = Path(there.folder, FOLDER, name)

    def write(self, record: RolloutRecord, *, redact: Callable[[str], str]) -> str | None:
        """Keep a run, if its suite is kept; return why that failed, if it did."""
        suite = record.result.suite
        return self.append(suite, transcript_line(record, redact)) if self.keeps(suite) else None

    def keeps(self, suite: str) -> bool:
        """Return whether the conversations of a suite are kept."""
        return suite in self._paths

    def append(self, suite: str, line: bytes) -> str | None:
        """Keep a line that `transcript_line` made; return why that failed, if it did."""
        path = self._paths.get(suite)
        if path is None:
            return None
        try:
            file = self._files.get(suite)
            if file is None:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = self._files[suite] = AppendFile(path)
            file.write(line)
        except OSError as error:
            del self._paths[suite]
            return f"cannot write {path}: {error.strerror or error}"
        return None

    def close(self) -> None:
        """Put what was written on disk, and close. Idempotent.

        The journal decides what was kept: a conversation that cannot be synced is not an error.
        """
        while self._files:
            _, file = self._files.popitem()
            with contextlib.suppress(OSError):
                file.sync()
            file.close()


def transcript_line(record: RolloutRecord, redact: Callable[[str], str]) -> bytes:
    """Return a run's line; the result is the JSON that the journal and the report have too."""
    result = record.result
    whole, rest = _rest(record, redact)
    return add_checksum(
        f'{{"row":{result.row_index},"run":{result.run_index},"whole":{int(whole)},'
        f'"result":{record.encoded},{rest[1:]}'
    )


def _rest(record: RolloutRecord, redact: Callable[[str], str]) -> tuple[bool, str]:
    """Return whether the conversation is there as it was, and all beside the result as JSON."""
    fields: dict[str, Any] = {
        "why": record.explanation,
        "reward": record.reward,
        "ground_truth": record.ground_truth,
        "calls": record.calls,
        "reasons": record.reasons,
        "messages": record.messages,
    }
    whole = True
    try:
        text = encode(fields)
    except (TypeError, ValueError, RecursionError):  # messages hold what JSON has not
        whole = False
        fields = plain(fields)
        text = encode(fields)
    if redact(text) != text:
        fields = masked(json.loads(text), redact)
        text = encode(fields)
    if len(text) > SIZE_LIMIT:
        whole = False
        fields["messages"], _ = excerpt(json.loads(text)["messages"])
        text = encode(fields)
    return whole, text


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a transcript is."""

    file: int
    offset: int
    length: int
    whole: bool


class Transcripts:
    """The transcripts of one evaluation, by row and run; the last one of each."""

    def __init__(self, folder: Path, *, session: int | None = None) -> None:
        """Look at those of one session, or of all."""
        pattern = "*.jsonl" if session is None else f"{session:04}-*.jsonl"
        self._files = sorted((folder / FOLDER).glob(pattern))  # in the order of the sessions
        self._entries: dict[RowRun, _Entry] = {}
        for number, path in enumerate(self._files):
            for key, offset, length, whole in _scan(path):
                self._entries[key] = _Entry(number, offset, length, whole)

    def __contains__(self, key: RowRun) -> bool:
        return key in self._entries

    def has_messages(self, key: RowRun) -> bool:
        """Return whether the conversation was kept as it was."""
        entry = self._entries.get(key)
        return entry is not None and entry.whole

    def __iter__(self) -> Iterator[RowRun]:
        return iter(self._entries)

    def records(self) -> Iterator[RolloutRecord]:
        """Yield what was kept of each run, in the order of rows and runs."""
        for key in sorted(self._entries):
            record = self.read(key)
            if record is not None:
                yield record

    def read(self, key: RowRun) -> RolloutRecord | None:
        """Return what was kept of a run; None when that is nothing, or damaged."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        with self._files[entry.file].open("rb") as file:
            fields = verify_checksum(os.pread(file.fileno(), entry.length, entry.offset))
        return None if fields is None else _record(fields)


def _record(fields: Mapping[str, Any]) -> RolloutRecord:
    """Return the run of a line; earlier versions wrote less of it."""
    return RolloutRecord(
        result_of(fields["result"], fields["result"]["suite"]),
        fields["why"],
        fields["messages"] or [],
        fields.get("ground_truth"),
        reward=fields["reward"],
        calls=fields.get("calls", ()),
        reasons=fields.get("reasons", {}),
    )


def messages_of(line: bytes) -> list[dict[str, Any]]:
    """Return the conversation of a line that `transcript_line` made."""
    messages: list[dict[str, Any]] = json.loads(line)["messages"] or []
    return messages


def _scan(path: Path) -> Iterator[tuple[RowRun, int, int, bool]]:
    """Yield key and place of every line that has a beginning and an end; a torn one has none."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            key = _KEY.match(line[:60])
            if key is not None and line.endswith(b"}\n"):
                yield (int(key[1]), int(key[2])), offset, len(line), key[3] == b"1"
            offset += len(line)
