"""The process that holds a driver's connection to a Ray cluster, and no secret.

Ray ends a process whose cluster has gone away, keeps its command line, and prints to its output:
here that is this process. Orders come as lines of JSON on stdin, reports leave as lines on
stdout; it ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from . import cluster
from .task import mark_of, run_shard


class RayClient:
    """Starts and cancels tasks, and reports how they end."""

    def __init__(self, reports: TextIO) -> None:
        self._reports = reports
        self._lock = threading.Lock()
        self._tasks: dict[int, Any] = {}
        """By shard: the reference of its last task."""
        self._folder: Path | None = None
        """Of a cluster that was started."""

    def connect(self, address: str, project: str, runtime_env: Mapping[str, Any]) -> None:
        """Connect to a cluster, and report where it is or why there is none."""
        try:
            self._folder = cluster.connect(address, Path(project), runtime_env)
        except cluster.NoCluster as error:
            self._report("refused", why=str(error))
            return
        import ray

        processors = float(ray.cluster_resources().get("CPU", 0.0))
        host = ray.util.get_node_ip_address()
        folder = None if self._folder is None else str(self._folder)
        self._report("connected", host=host, processors=processors, folder=folder)

    def start(self, shard: int, number: int, invitation: str, cpus: float) -> None:
        """Start a task; `number` tells it from others of the same shard."""
        import ray

        task = ray.remote(run_shard).options(
            num_cpus=cpus,
            max_retries=0,
            scheduling_strategy="SPREAD",
            name=f"osmosis-shard-{shard + 1}",
        )
        reference = task.remote(invitation, sys.prefix, mark_of(Path(sys.prefix)))
        self._tasks[shard] = reference
        reference.future().add_done_callback(partial(self._ended, shard, number))

    def cancel(self, shard: int) -> None:
        """End a task and its process."""
        import ray

        with suppress(Exception):  # it has ended meanwhile
            ray.cancel(self._tasks[shard], force=True)

    def close(self) -> None:
        """End what is left, and the connection."""
        import ray

        if ray.is_initialized():
            for shard in self._tasks:
                self.cancel(shard)
            ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _ended(self, shard: int, number: int, future: Future[int]) -> None:
        """Report that a task has ended; in a thread of Ray's."""
        error = future.exception()
        if error is None:
            self._report("ended", shard=shard, number=number, status=future.result())
        else:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            self._report("ended", shard=shard, number=number, why=text)

    def _report(self, kind: str, **values: Any) -> None:
        with self._lock, suppress(OSError):  # the driver is gone
            self._reports.write(json.dumps([kind, values]) + "\n")
            self._reports.flush()


def serve(orders: Iterable[str], client: RayClient) -> None:
    """Do what each line orders, until there are no more."""
    known: dict[str, Callable[..., None]] = {
        "connect": client.connect,
        "start": client.start,
        "cancel": client.cancel,
    }
    for line in orders:
        kind, values = json.loads(line)
        known[kind](**values)
    client.close()


def main() -> None:
    """Serve a driver: what Ray itself prints goes where stderr does."""
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, RayClient(reports))
    os._exit(0)  # whatever threads of Ray's are left
