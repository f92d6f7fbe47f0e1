"""A cassette on disk: one sorted file, and one of each process that is recording.

    calls.jsonl        every line once, sorted: what a repository holds
    calls-<hex>.part   what a process adds; joined into the file above when its session ends

One session at a time records into a folder. The end of a part may be torn, as a killed process
leaves it; any other damage is refused. Does not know who calls.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from ...escaping import shown_path
from ...storage.atomic_write import write_whole
from ...storage.group_sync import AppendFile
from ...storage.run_directory import NO_LOCKS
from .lines import RunKey, as_line

FILE = "calls.jsonl"
_PARTS = "calls-*.part"


class Calls:
    """What a folder holds."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.of_run: dict[RunKey, dict[tuple[str, int], dict[str, Any]]] = {}
        """Each run's replies, by request and number."""
        self._attempts: defaultdict[RunKey, int] = defaultdict(int)

    def take(self, value: dict[str, Any]) -> None:
        """Add a line; of a run that was begun again, the last attempt counts."""
        if "part" in value:
            self.parts[value["part"]] = value["value"]
        elif "row" not in value:
            self.requests[value["request"]] = value
        else:
            run: RunKey = (value["suite"], value["row"], value["run"])
            attempt = value.pop("attempt", 0)
            if attempt > self._attempts[run]:
                self._attempts[run] = attempt
                self.of_run[run] = {}
            if attempt == self._attempts[run]:
                found = self.of_run.setdefault(run, {})
                found[value["request"], value["number"]] = value

    def lines(self) -> Iterator[bytes]:
        """Yield what the file holds: no request without a reply, no part without a request."""
        calls = [
            replies[key] for _, replies in sorted(self.of_run.items()) for key in sorted(replies)
        ]
        used = {call["request"] for call in calls}
        requests = [self.requests[name] for name in sorted(used & self.requests.keys())]
        parts = {
            part for each in requests for ids in each.get("lists", {}).values() for part in ids
        }
        for name in sorted(parts & self.parts.keys()):
            yield as_line({"part": name, "value": self.parts[name]})
        yield from map(as_line, requests)
        yield from map(as_line, calls)


def read(folder: Path) -> Calls:
    """Return what is recorded; raise ConfigurationError where a file cannot be read."""
    calls = Calls()
    for path in [folder / FILE, *sorted(folder.glob(_PARTS))]:
        _read_file(path, calls)
    return calls


def _read_file(path: Path, calls: Calls) -> None:
    """Add the lines of a file."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None
    damaged = 0
    for number, line in enumerate(lines, start=1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            calls.take(json.loads(line))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            damaged = damaged or number
            if path.name != FILE:
                continue
        if damaged:
            raise ConfigurationError(
                f"{shown_path(path)}, line {damaged}, is no recorded call: restore the file from "
                "version control, or remove it and record again"
            )


def join(folder: Path) -> None:
    """Join the files of processes that have ended into the one that is kept."""
    parts = sorted(folder.glob(_PARTS))
    if parts:
        write_whole(folder / FILE, read(folder).lines(), mode=0o600)
    for part in parts:
        part.unlink()


def new_part(folder: Path) -> AppendFile:
    """Return a file for what this process records."""
    return AppendFile(folder / f"calls-{os.urandom(8).hex()}.part")


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other sessions, where the file system has locks.

    Raises:
        ConfigurationError: when another session records into it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ConfigurationError(
            f"{shown_path(folder)}: another session records into it: wait for it, or name "
            "another folder"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            os.close(descriptor)
            raise
    try:
        yield
    finally:
        os.close(descriptor)
