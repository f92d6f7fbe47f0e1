"""Makes the Nth call of the operating system fail, for N = 1, 2, 3, … until nothing fails any more.

    python -m tests.support.failing_calls journal ENOSPC FOLDER

Each attempt runs in a process of its own, in a folder of its own, and ends with a line of JSON:
`{"n": 3, "failed_in": "fsync", "acknowledged": 2}`. `exit` in place of an errno ends the process.
What is left on disk afterwards is for a test to judge.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

CALLS = ("open", "write", "fsync", "replace", "rename")
MOST = 200
IMPORTED = (
    "filelock",
    "osmosis_cli.credentials.file",
    "pytest_osmosis.storage.atomic_write",
    "pytest_osmosis.storage.group_sync",
    "pytest_osmosis.storage.journal",
)

Acknowledge = Callable[[int], None]


def journal(folder: Path, acknowledge: Acknowledge) -> None:
    """A journal is made, and six runs are kept in it, two at a time."""
    from pytest_osmosis.run_result import RolloutRecord, RunResult
    from pytest_osmosis.storage.group_sync import AppendFile, GroupSync
    from pytest_osmosis.storage.journal import FILE, create
    from pytest_osmosis.storage.run_lines import run_lines

    plan = {"n": 1, "rows": [[0, 6]], "digests": "x" * 72, "names": None}
    create(folder, {"name": "x", "info": {"name": "d"}}, {"number": 1, "plan": plan})
    failed: list[object] = []
    group = GroupSync(on_failure=lambda *what: failed.append(what), flush_interval_s=60)
    file = AppendFile(folder / FILE)
    for row in range(0, 6, 2):
        for each in (row, row + 1):
            record = RolloutRecord(RunResult("d", each, 0, passed=True), messages=[FILLER])
            ticket, _ = group.write(file, run_lines(record))
        group.wait(ticket)
        if failed:
            raise OSError("not synced")
        acknowledge(row + 2)


def report(folder: Path, acknowledge: Acknowledge) -> None:
    """A file is replaced, twice."""
    from pytest_osmosis.storage.atomic_write import write_whole

    for number in (1, 2):
        write_whole(folder / "report.json", json.dumps({"number": number} | FILLER).encode())
        acknowledge(number)


def credentials(folder: Path, acknowledge: Acknowledge) -> None:
    """A credentials file is made with one login, gets a second, and loses the first."""
    from osmosis_ai.platform.account import User
    from osmosis_ai.secret import Secret
    from osmosis_cli.credentials import file
    from osmosis_cli.credentials.login import KeptLogin, LoginProblem

    os.umask(0)
    path = folder / "osmosis" / "credentials.json"
    token = Secret("token-of-a-login-99")
    login = KeptLogin(user=User(), token=token, expires_at="2999-01-01T00:00:00Z")
    platform = "https://platform.osmosis.ai"
    changes = (
        lambda logins: logins.with_login(platform, "one", login),
        lambda logins: logins.with_login(platform, "two", login),
        lambda logins: logins.without(platform, "one"),
    )
    for number, edit in enumerate(changes, start=1):
        try:
            file.change(path, edit, print)
        except LoginProblem as problem:
            raise OSError(str(problem)) from problem
        acknowledge(number)


FILLER: dict[str, Any] = {"filler": "x" * 5000}


class Nth:
    """Counts the calls from all of the process, and makes one of them fail."""

    def __init__(self, n: int, fault: str) -> None:
        self.left = n
        self.fault = fault
        self.failed_in: str | None = None

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left != 0:
                return call(*args, **kwargs)
            self.failed_in = name
            if name == "write":  # as a full disk does it: a part is written, then no more
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            if self.fault == "exit":
                os._exit(7)
            number = getattr(errno, self.fault)
            raise OSError(number, os.strerror(number))

        return wrapped


def attempt(operation: Callable[[Path, Acknowledge], None], folder: Path, nth: Nth) -> None:
    """One attempt, in a child; acknowledgements outlive it in a file."""
    acks, write = os.open(folder.with_suffix(".acknowledged"), os.O_WRONLY | os.O_CREAT), os.write
    nth.install()
    try:
        operation(folder, lambda count: os.truncate(acks, 0) or write_at(write, acks, count))
    except OSError:
        os._exit(1)
    os._exit(0 if nth.failed_in is None else 2)


def write_at(write: Callable[[int, bytes], int], descriptor: int, count: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    write(descriptor, str(count).encode())


def main(operation: str, fault: str, folder: Path) -> None:
    for module in IMPORTED:  # before any call can fail
        import_module(module)

    for n in range(1, MOST):
        place = folder / str(n)
        place.mkdir()
        child = os.fork()
        if child == 0:
            attempt(globals()[operation], place, Nth(n, fault))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = place.with_suffix(".acknowledged").read_text()
        print(json.dumps({"n": n, "status": status, "acknowledged": int(text or 0)}), flush=True)
        if status == 0:
            return
    raise SystemExit(f"still failing at call {MOST}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
