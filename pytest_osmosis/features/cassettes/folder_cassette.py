"""The cassette of a process: records the calls of its runs, or answers them.

An answer belongs to its request, its run, and how often the run has made that request before. Where
the row has moved, or the data file has another name, the nearest row's answer of the same run
counts. Never gives one answer to two runs of a row: that would make one sample two.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

from osmosis_ai.models.errors import UNSUPPORTED, CallFault
from osmosis_ai.models.transport import cassettes
from osmosis_ai.models.transport.cassettes import Caller
from osmosis_ai.models.transport.exchange import Reply
from osmosis_ai.secret import redact

from ...errors import ConfigurationError
from ...escaping import shown_path
from ...rollouts.around import AroundRuns
from ...run_result import RunId
from ...storage.group_sync import AppendFile
from . import CassetteSpec
from . import folder as folders
from .folder import Calls
from .lines import NO_RUN, Request, RunKey, as_line, call_value, reply_of

_LAST_REQUESTS = 256
_OF_THE_REQUEST = frozenset({400, 413, 422})
"""Statuses that the request itself has caused; others may have passed at the next try."""


class _Part:
    """What this process adds to a folder: a file from its first line on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: AppendFile | None = None

    def write(self, lines: bytes) -> None:
        self._file = self._file or folders.new_part(self._folder)
        self._file.write(lines)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class FolderCassette(AroundRuns):
    """`osmosis_ai.models.transport.cassettes.Cassette` over a folder."""

    def __init__(
        self,
        spec: CassetteSpec,
        calls: Calls | None = None,
        send: Callable[[str], None] | None = None,
    ) -> None:
        """`calls`: what the folder holds; `send` takes recorded lines in its place."""
        self.is_complete = spec.is_complete
        self._folder = spec.folder
        self._replaces = not spec.replays
        self._callers: dict[RunId, Caller] = {}
        self._outside = Caller()
        """Of all calls that no run makes."""
        self._calls = (calls or folders.read(spec.folder)) if spec.replays else Calls()
        self._places: defaultdict[tuple[str, int, int], list[RunKey]] = defaultdict(list)
        """The runs that have a reply to a request, by request, run index and number."""
        for run, replies in self._calls.of_run.items():
            for request, number in replies:
                self._places[request, run[2], number].append(run)
        self._part = _Part(spec.folder)
        self._send = send
        self._written: set[str] = set()
        self._lock = threading.Lock()
        self._request = lru_cache(_LAST_REQUESTS)(Request)
        """The runs of a row often ask the same."""

    def begin(self, run: RunId, *, again: bool = False) -> None:
        """Have the calls of the running task belong to a run; `again`: beside its earlier ones."""
        caller = self._callers.get(run) if again else None
        if caller is None:
            began = time.time_ns() if self._replaces and not again else 0
            caller = self._callers[run] = Caller(run, began)
        cassettes.current.set(caller)

    def answer(self, method: str, path: str, body: bytes) -> Reply | None:
        """Return the recorded reply; without one None, or raise CallFault if nothing is sent."""
        if self._replaces:
            return None
        request, caller = self._request(method, path, body), self._caller()
        with self._lock:
            value = self._find(request.id, _key_of(caller), caller.asked[request.id])
            if value is not None:
                caller.asked[request.id] += 1
                return reply_of(value)
        if not self.is_complete:
            return None
        from .nearest_call import explain

        detail = f"{shown_path(self._folder)}: {explain(request, _key_of(caller), self._calls)}"
        raise CallFault("not_recorded", detail)

    def keep(self, method: str, path: str, body: bytes, reply: Reply) -> None:
        """Write the reply down, unless the request is about to be sent again for it."""
        if not (200 <= reply.status < 300 or reply.status in _OF_THE_REQUEST):
            return
        request, caller = Request(method, path, body), self._caller()
        with self._lock:
            number = caller.asked[request.id]
            caller.asked[request.id] += 1
            value = call_value(request, _key_of(caller), number, reply)
            if caller.attempt:
                value["attempt"] = caller.attempt
            new = dict(request.lines()) if request.id not in self._written else {}
            lines = [line for name, line in new.items() if name not in self._written]
            try:
                self._write(b"".join([*lines, as_line(value)]))
            except OSError as error:
                reason = f"{shown_path(self._folder)}: calls cannot be recorded: {error.strerror}"
                raise CallFault("bad_request", reason, reason=UNSUPPORTED) from None
            self._written.update(new)

    def join(self, run: RunId) -> None:
        """Have the calls of the running code belong to a run, beside its earlier ones."""
        self.begin(run, again=True)

    def close(self) -> None:
        """Take it out of the process; harmless when repeated."""
        if cassettes.inserted is self:
            cassettes.inserted = None
        self._part.close()

    def _write(self, lines: bytes) -> None:
        if self._send is None:
            self._part.write(lines)
        else:
            self._send(lines.decode())

    def _caller(self) -> Caller:
        return cassettes.current.get() or self._outside

    def _find(self, request: str, run: RunKey, number: int) -> dict[str, Any] | None:
        """Return the reply of the run itself, else of the nearest row's same run."""
        runs = self._places.get((request, run[2], number))
        if not runs:
            return None
        nearest = min(runs, key=lambda each: (each != run, abs(each[1] - run[1]), each))
        return self._calls.of_run[nearest][request, number]


def _key_of(caller: Caller) -> RunKey:
    run: RunId | None = caller.key
    return NO_RUN if run is None else (run.suite, run.row_index, run.run_index)


class OpenFolder:
    """A session's cassette in the process that reports: its own while calls are recorded."""

    def __init__(self, spec: CassetteSpec) -> None:
        """Raise ConfigurationError where it cannot be used."""
        self._folder, self._records = spec.folder, not spec.replays or spec.asks_missing
        shown = shown_path(spec.folder)
        with ExitStack() as opened:
            if self._records:
                try:
                    spec.folder.mkdir(parents=True, exist_ok=True)
                    opened.enter_context(folders.lock(spec.folder))
                    folders.join(spec.folder)
                except OSError as error:
                    raise ConfigurationError(
                        f"{shown}: calls cannot be recorded: {error.strerror}"
                    ) from None
            self.calls = folders.read(spec.folder)
            if spec.replays and not any(self.calls.of_run.values()):
                raise ConfigurationError(
                    f"--osmosis-replay {shown!r}: no call is recorded there: record them with "
                    f"--osmosis-record={shown}"
                )
            self._opened = opened.pop_all()
        self._part = _Part(spec.folder)

    def take(self, lines: str) -> None:
        """Write what a process elsewhere has recorded; raise OSError where that cannot be."""
        self._part.write(redact(lines).encode())

    def close(self) -> None:
        """Join what the session recorded, and release the folder; OSError leaves the parts."""
        with self._opened:
            self._part.close()
            if self._records:
                self._records = False
                folders.join(self._folder)
