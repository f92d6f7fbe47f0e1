"""The conversations of the runs, written by whichever process ran them, before anything else is.

Each process of a session has a file of its own, so a line is never mixed with another's; a line
holds the run's result too, so that a run is not lost when the controller dies before it knew of it.
Conversations are read one at a time and never held. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..results import RunResult
from .group_commit import AppendFile
from .journal import add_checksum, encode, verify_checksum

if TYPE_CHECKING:
    from .journal import RowRun

FOLDER = "conversations"
SIZE_LIMIT = 8 << 20
"""Bytes of a conversation that is kept; a longer one is not, and is said to be missing."""
_KEY = re.compile(rb'\{"row":(\d+),"run":(\d+),"whole":([01]),')


class Place(NamedTuple):
    """Where a process writes the conversations of a suite."""

    folder: str
    session: int


class ConversationLog:
    """One process's file of a session; made when the first run ends."""

    def __init__(self, folder: Path, session: int, process: str) -> None:
        self._path = folder / FOLDER / f"{session:04}-{process}.jsonl"
        self._file: AppendFile | None = None

    @property
    def path(self) -> Path:
        """Where the conversations go."""
        return self._path

    def write(
        self,
        result: RunResult,
        text: str,
        *,
        why: str,
        messages: list[dict[str, Any]],
        reward: float | None,
        redact: Callable[[str], str],
    ) -> None:
        """Keep a run; `text` is its result as JSON. OSError when it cannot be written."""
        said = redact(_encoded(messages))
        if len(said) > SIZE_LIMIT:
            said = "null"
        whole = int(said != "null")
        line = add_checksum(
            f'{{"row":{result.row_index},"run":{result.run_index},"whole":{whole},"result":{text},'
            f'"why":{encode(why)},"reward":{encode(reward)},"messages":{said}}}'
        )
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._file = AppendFile(self._path)
        self._file.write(line)

    def close(self) -> None:
        """Put what was written on disk, and close. Idempotent; OSError when that fails."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.sync()
            finally:
                file.close()


def _encoded(messages: list[dict[str, Any]]) -> str:
    """The messages as JSON; null for what JSON cannot hold."""
    try:
        return encode(messages)
    except (TypeError, ValueError, RecursionError):
        return "null"


class ConversationLogs:
    """One process's files of a session, one a suite."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._logs: dict[str, ConversationLog] = {}

    def begin(self, suite: str, folder: Path, session: int) -> None:
        """From here on the suite's conversations are kept."""
        self._logs[suite] = ConversationLog(folder, session, self._process)

    def write(
        self,
        result: RunResult,
        text: str,
        *,
        why: str,
        messages: list[dict[str, Any]],
        reward: float | None,
        redact: Callable[[str], str],
    ) -> str | None:
        """Keep a run, if its suite is kept; why that failed, if it did."""
        log = self._logs.get(result.suite)
        if log is None:
            return None
        try:
            log.write(result, text, why=why, messages=messages, reward=reward, redact=redact)
        except OSError as error:
            del self._logs[result.suite]
            return f"cannot write {log.path}: {error.strerror or error}"
        return None

    def close(self) -> None:
        """Put everything on disk. Idempotent; a file that cannot be is left as it is."""
        while self._logs:
            _, log = self._logs.popitem()
            with contextlib.suppress(OSError):  # the runs are in the journal
                log.close()


class Recorded(NamedTuple):
    """A run as it was kept."""

    result: dict[str, Any]
    why: str
    reward: float | None
    messages: list[dict[str, Any]] | None
    """None when the conversation was too long, or held what JSON cannot."""


class _Spot(NamedTuple):
    file: int
    offset: int
    length: int
    whole: bool


class Transcripts:
    """The conversations of one evaluation, by row and run; the last one of each."""

    def __init__(self, folder: Path, *, session: int | None = None) -> None:
        """With `session`, those of that session alone."""
        self._files = _files(folder, session)
        self._spots: dict[RowRun, _Spot] = {}
        for number, path in enumerate(self._files):
            for key, offset, length, whole in _scan(path):
                self._spots[key] = _Spot(number, offset, length, whole)

    def __contains__(self, key: RowRun) -> bool:
        return key in self._spots

    def has_messages(self, key: RowRun) -> bool:
        """Whether the conversation itself was kept."""
        spot = self._spots.get(key)
        return spot is not None and spot.whole

    def __iter__(self) -> Iterator[RowRun]:
        return iter(self._spots)

    def read(self, key: RowRun) -> Recorded | None:
        """What was kept of a run; None when that is nothing, or damaged."""
        spot = self._spots.get(key)
        if spot is None:
            return None
        with self._files[spot.file].open("rb") as file:
            record = verify_checksum(os.pread(file.fileno(), spot.length, spot.offset))
        if record is None:
            return None
        return Recorded(record["result"], record["why"], record["reward"], record["messages"])


def _files(folder: Path, session: int | None) -> list[Path]:
    """In the order of the sessions; names begin with the session's number."""
    pattern = "*.jsonl" if session is None else f"{session:04}-*.jsonl"
    return sorted((folder / FOLDER).glob(pattern))


def _scan(path: Path) -> Iterator[tuple[RowRun, int, int, bool]]:
    """Key and place of every line that has a beginning and an end; a torn last one has none."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            key = _KEY.match(line[:60])
            if key is not None and line.endswith(b"}\n"):
                yield (int(key[1]), int(key[2])), offset, len(line), key[3] == b"1"
            offset += len(line)
