"""The driver's end of the process that is connected to a Ray cluster (`client`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_osmosis.errors import ConfigurationError

CLOSE_S = 5.0
"""How long a cluster that was started for the session may take to end."""
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1"}
_CODE = """import sys
sys.path[:] = filter(None, sys.path)  # no module of the folder that it is started in
from osmosis_executors.ray.client import main
main()"""


@dataclass(frozen=True, slots=True)
class Connected:
    """The cluster that was found, or started."""

    host: str
    """This machine's address in its network."""
    processors: float
    folder: str | None
    """Of a cluster that was started for the session."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How a task of a shard has ended."""

    shard: int
    number: int
    status: int | None = None
    """The exit status of its process; None where the task failed."""
    why: str = ""


class RayConnection:
    """A process that is connected to a cluster, until it is closed."""

    def __init__(
        self,
        without: Iterable[str],
        *,
        on_end: Callable[[TaskEnd], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`without`: variables that it must not have.

        `on_end` is called for each task that has ended, `on_lost` when the process has ended: both
        in a thread of their own.
        """
        self._on_end = on_end
        self._on_lost = on_lost
        self._is_closing = False
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._folder: str | None = None
        hidden = frozenset(without)
        own = {name: value for name, value in os.environ.items() if name not in hidden}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            env={**own, **_SETTINGS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is the driver's
        )

    def connect(self, address: str, project: Path, runtime_env: Mapping[str, Any]) -> Connected:
        """Connect to a cluster whose tasks run in a copy of the project.

        Raises:
            ConfigurationError: where there is none.
        """
        self._order("connect", address=address, project=str(project), runtime_env=dict(runtime_env))
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        kind, values = json.loads(line) if line else ("refused", {"why": "Ray has ended"})
        if kind == "refused":
            raise ConfigurationError(f"--osmosis-ray {address}: {values['why']}")
        self._reader = threading.Thread(target=self._read, name="osmosis-ray", daemon=True)
        self._reader.start()
        found = Connected(**values)
        self._folder = found.folder
        return found

    def start(self, shard: int, number: int, *, invitation: str, cpus: float) -> None:
        """Start a task; its end is reported with this number."""
        self._order("start", shard=shard, number=number, invitation=invitation, cpus=cpus)

    def cancel(self, shard: int) -> None:
        """End the task of a shard, and its process."""
        self._order("cancel", shard=shard)

    def end(self) -> None:
        """Begin to end what is left on the cluster, and the process. Idempotent."""
        self._is_closing = True
        assert self._process.stdin is not None
        with self._lock, suppress(BrokenPipeError):
            self._process.stdin.close()

    def close(self) -> None:
        """End it, and wait for it; of a cluster that it started, nothing is left. Idempotent."""
        self.end()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._reader is not None:
            self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if self._folder is not None:  # its process may have been killed
            shutil.rmtree(self._folder, ignore_errors=True)

    def _order(self, kind: str, **values: Any) -> None:
        assert self._process.stdin is not None
        with self._lock, suppress(BrokenPipeError):  # `on_lost` says so
            if not self._process.stdin.closed:
                self._process.stdin.write(json.dumps([kind, values]) + "\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_end(TaskEnd(**json.loads(line)[1]))
        if not self._is_closing:
            self._on_lost()
