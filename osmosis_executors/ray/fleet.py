"""The shards of an evaluation as tasks of a Ray cluster, with a copy of the project.

A task starts one process, which speaks with the driver on a channel of its own: Ray's arguments,
object store and logs hold no record, no variable and no secret. A task is started once: whether a
shard is started again is the driver's decision.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmosis_ai.platform import git_command
from pytest_osmosis.distributed.shards import Shards
from pytest_osmosis.distributed.shards.fleet import Listener, ShardOrder
from pytest_osmosis.errors import ConfigurationError

from ..shards.process import NOT_INVITED
from . import cluster
from .connection import Connected, RayConnection, TaskEnd

if TYPE_CHECKING:
    from ..shards.hub import Hub

END_S = 1.0
"""How long processes may take to end once they were asked to."""
GONE = (
    "the Ray cluster went away; the same command resumes from what is kept, with another cluster "
    "or without one"
)


class RayFleet:
    """The tasks of one session."""

    def __init__(self, shards: Shards) -> None:
        if lacking := cluster.missing():
            needed = f"{' and '.join(lacking)}: {cluster.EXTRA}"
            raise ConfigurationError(f"--osmosis-ray needs {needed}")
        self._address = shards.address
        self._cpus: float = shards.settings["cpus"]
        self._runtime_env = cluster.read_runtime_env(shards.settings["runtime_env"])
        self._order: ShardOrder | None = None
        self._hub: Hub | None = None
        self._connection: RayConnection | None = None
        self._connected = Connected("", 0.0, folder=None)
        self._is_closing = False
        self._is_lost = False
        self._started = 0
        """How many tasks were started."""
        self._running: dict[int, int] = {}
        """By shard: the number of its task."""
        self._silent: set[int] = set()
        self._changed = threading.Condition()

    def connect(self, order: ShardOrder) -> str:
        """Connect to the cluster, and give it a copy of the project; return where it is."""
        connection = self._connection = RayConnection(
            order.secrets, on_end=self._task_ended, on_lost=self._lost
        )
        with tempfile.TemporaryDirectory(prefix="osmosis-project-") as folder:
            project = Path(folder)
            copy_project(order.root, order.files, project)
            found = connection.connect(self._address, project, self._runtime_env)
        self._connected = found
        self._order = order
        if self._cpus > found.processors:
            raise ConfigurationError(
                f"--osmosis-ray-cpus {self._cpus:g}: the cluster has "
                f"{found.processors:g} processors in all"
            )
        count = f"{found.processors:g} processors"
        if found.folder is not None:
            return f"a Ray cluster of this machine, started for the session ({count})"
        return f"the Ray cluster of {found.host} ({count})"

    @property
    def capacity(self) -> int:
        """How many shards can run at once."""
        return max(1, int(self._connected.processors / self._cpus))

    def begin(self, listener: Listener) -> None:
        """Listen for shards."""
        from ..shards.hub import Hub  # needs the extra, which was looked for

        order = self._order
        assert order is not None
        self._hub = Hub(self._connected.host, order, listener, on_silence=self._end_silent)

    def start(self, shard: int) -> None:
        """Start the task of a shard, or another one."""
        assert self._hub is not None and self._connection is not None
        with self._changed:
            if self._is_closing or self._is_lost:
                return
            self._started += 1
            number = self._running[shard] = self._started
        invitation = self._hub.invite(shard).to_json()
        self._connection.start(shard, number, invitation=invitation, cpus=self._cpus)

    def send(self, shard: int, kind: str, *values: Any) -> None:
        """Send a message to the process of a shard."""
        if self._hub is not None:
            self._hub.send(shard, kind, *values)

    def end(self) -> None:
        """Have Ray end all processes; do not wait."""
        with self._changed:
            self._is_closing = True
        if self._hub is not None:
            self._hub.close()
        if self._connection is not None:
            self._connection.end()

    def close(self) -> None:
        """End all processes: those that do not end when asked are ended by Ray."""
        if self._connection is None:
            return
        with self._changed:
            was_closing, self._is_closing = self._is_closing, True
            if not was_closing:
                self._changed.wait_for(lambda: not self._running, END_S)
        self.end()
        self._connection.close()

    def _end_silent(self, shard: int) -> None:
        """End a process that says nothing any more; in the hub's thread."""
        assert self._connection is not None
        self._silent.add(shard)
        self._connection.cancel(shard)

    def _task_ended(self, end: TaskEnd) -> None:
        """Report that a task has ended; in the connection's thread."""
        with self._changed:
            if self._running.get(end.shard) != end.number:
                return
            del self._running[end.shard]
            self._changed.notify_all()
        if self._is_closing or self._hub is None or self._order is None:
            return
        if end.shard in self._silent:
            self._silent.discard(end.shard)
            reason = f"its process said nothing for {self._order.silence_s:g} s"
            self._hub.ended(end.shard, reason, suspect=True)
        elif end.status is None:
            self._hub.ended(end.shard, end.why, suspect=False)
        else:
            message = f"its process {_how(end.status)}"
            self._hub.ended(end.shard, message, suspect=end.status not in (0, NOT_INVITED))

    def _lost(self) -> None:
        """Report that nothing more comes of the cluster; in the connection's thread."""
        with self._changed:
            self._is_lost = True
            running, self._running = [*self._running], {}
            self._changed.notify_all()
        if self._hub is not None:
            self._hub.lost(GONE)
            for shard in running:
                self._hub.ended(shard, "the cluster went away", suspect=False)


make_fleet = RayFleet
"""See `osmosis_executors.table.make_fleet`."""


def _how(status: int) -> str:
    if status == NOT_INVITED:
        return "could not reach the driver"
    if status <= 128:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(status - 128).name}"
    return f"was ended by signal {status - 128}"


MAX_BYTES = 200 << 20
MAX_FILES = 20_000
_FOLDERS = frozenset(
    {
        ".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".osmosis",
        ".mypy_cache", ".pytest_cache", ".ruff_cache",
    }
)  # fmt: skip
_ENDINGS = (".env", ".secrets", ".pem", ".key", ".pyc")
_NAMES = (".gitignore", ".rayignore", ".netrc", ".pypirc")
"""Files that Ray would take for lists of what to leave out, and files of passwords."""


def copy_project(root: Path, needed: Mapping[str, Path], target: Path) -> int:
    """Copy a project into an empty folder, with the files that are needed; return their number.

    Raises:
        ConfigurationError: when it is too large to be given to other machines.
    """
    files = {str(file.relative_to(root)): file for file in _files(root) if _is_in(file, root)}
    size = 0
    for count, (place, file) in enumerate({**files, **needed}.items(), start=1):
        size += file.stat().st_size
        if count > MAX_FILES or size > MAX_BYTES:
            raise ConfigurationError(
                f"--osmosis-ray: the project in {root} is too large to be given to a cluster: "
                f"more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MiB; have Git ignore "
                "what is not needed, or put large data where every machine has it under one path"
            )
        copy = target / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return len({**files, **needed})


def _is_in(file: Path, root: Path) -> bool:
    """Return whether it is a file of the project, and no link to one elsewhere."""
    return file.is_file() and file.resolve().is_relative_to(root.resolve())


def _files(root: Path) -> Iterator[Path]:
    known = _known_to_git(root)
    for file in _walk(root) if known is None else known:
        is_env = file.name.startswith(".env")
        if not (is_env or file.name in _NAMES or file.name.endswith(_ENDINGS)):
            yield file


def _known_to_git(root: Path) -> Iterator[Path] | None:
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        answer = git_command.ask(root, *words, looks_up=True)
    except git_command.GitError:
        return None
    if answer.status:
        return None
    names = [name for name in answer.out.split("\0") if name]
    return (root / name for name in names if _FOLDERS.isdisjoint(Path(name).parts))


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - _FOLDERS)
        yield from (Path(folder, name) for name in files)
