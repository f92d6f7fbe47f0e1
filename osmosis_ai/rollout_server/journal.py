"""Results on disk, one file a rollout: a restart loses no result and sends none twice.

Files contain no key: a result whose trainer requires one waits until the init is sent again. Each
file is replaced as a whole, mode 0600. One thread does all writing, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .events import event
from .execution import Outcome, failed
from .rollouts import Rollout

_VERSION = 1
_SUFFIX = ".rollout.json"


class JournalInUse(Exception):
    """Another server uses the folder."""


class Journal:
    """The folder of one server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="osmosis-journal")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder / "lock")

    async def save(self, rollout: Rollout) -> None:
        """Write the current record; it is on disk when this returns."""
        document = json.dumps(_document(rollout)).encode("ascii")
        path = self._path(rollout.rollout_id)
        await self._in_order(partial(_replace, path, document))

    async def remove(self, rollout: Rollout) -> None:
        """Delete an old record."""
        await self._in_order(partial(self._path(rollout.rollout_id).unlink, missing_ok=True))

    def load(self) -> list[Rollout]:
        """Return the records that are not expired; log files that cannot be read, and keep them."""
        found = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                rollout = _rollout(json.loads(path.read_bytes()))
            except (OSError, ValueError, KeyError, TypeError) as error:
                event("journal_unreadable", 30, file=path.name, error=type(error).__name__)
                continue
            if rollout.delivery != "expired":
                found.append(rollout)
        return found

    def close(self) -> None:
        """Finish writing and unlock the folder."""
        self._writer.shutdown()
        self._lock.release()

    async def _in_order(self, change: Callable[[], None]) -> None:
        """Have the writer make a change; it does so too where who awaits it is cancelled."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, change))

    def _path(self, rollout_id: str) -> Path:
        # A digest: file systems differ in the names that they allow and in case.
        return self._folder / f"{sha256(rollout_id.encode('utf-8')).hexdigest()[:40]}{_SUFFIX}"


def _document(rollout: Rollout) -> dict[str, Any]:
    outcome = rollout.outcome
    return {
        "version": _VERSION,
        "rollout_id": rollout.rollout_id,
        "identity": rollout.identity,
        "digest": rollout.digest,
        "server_url": rollout.server_url,
        "needs_key": rollout.key is not None or rollout.delivery == "needs_key",
        "answer": rollout.answer.decode("ascii"),
        "delivery": rollout.delivery,
        "status": outcome and outcome.status,
        "error": outcome and outcome.error,
        "result": outcome and outcome.body.decode("ascii"),
    }


def _rollout(document: dict[str, Any]) -> Rollout:
    if document["version"] != _VERSION:
        raise ValueError("another version")
    rollout = Rollout(
        rollout_id=str(document["rollout_id"]),
        identity=str(document["identity"]),
        digest=str(document["digest"]),
        server_url=str(document["server_url"]),
        answer=str(document["answer"]).encode("ascii"),
        delivery=document["delivery"],
    )
    if document["result"] is None:
        rollout.outcome = failed(rollout.rollout_id, "the server was restarted during the rollout")
    else:
        body = str(document["result"]).encode("ascii")
        rollout.outcome = Outcome(str(document["status"]), body, document["error"])
    if rollout.delivery in ("none", "pending", "needs_key"):
        rollout.delivery = "needs_key" if document["needs_key"] else "pending"
    return rollout


def _replace(path: Path, document: bytes) -> None:
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(document)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync the directory entry: without it a power failure may restore the old file."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_free(folder: Path) -> None:
    """Raise JournalInUse when a server uses this folder already."""
    _locked(folder / "lock").release()


def _locked(path: Path) -> FileLock:
    lock = FileLock(path, timeout=0, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise JournalInUse(f"{path.parent} is in use by another server") from None
    return lock
