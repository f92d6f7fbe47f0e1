"""The shards of an evaluation as tasks of a Ray cluster.

A task starts one process, which speaks with the driver on a channel of its own: Ray's arguments,
object store and logs hold no record, no variable and no secret. A task is started once: whether a
shard is started again is the driver's decision.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import signal
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

from osmosis_ai.secret import MIN_MASKABLE
from pytest_osmosis.distributed.remote.fleet import Listener, ShardOrder
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.spec import Cluster

from ..shards.hub import Hub
from ..shards.process import NOT_INVITED
from . import cluster as clusters
from .project import copy_project

END_S = 2.0
"""How long processes may take to end once they were asked to."""


class RayFleet:
    """The tasks of one session."""

    def __init__(self, cluster: Cluster) -> None:
        clusters.check_installed()
        self._cluster = cluster
        self._runtime_env = clusters.read_runtime_env(cluster.runtime_env)
        self._order: ShardOrder | None = None
        self._hub: Hub | None = None
        self._host = ""
        self._processors = 0.0
        self._is_connected = False
        self._is_closing = False
        self._tasks: dict[int, Any] = {}
        """By shard: the reference of its last task."""
        self._futures: set[concurrent.futures.Future[int]] = set()
        self._silent: set[int] = set()
        self._lock = threading.Lock()

    def connect(self, order: ShardOrder) -> str:
        """Connect to the cluster, and give it a copy of the project; return where it is."""
        _refuse_secrets_in_argv(order)
        with (
            tempfile.TemporaryDirectory(prefix="osmosis-project-") as folder,
            clusters.as_it_was(without=order.secrets),
        ):
            project = Path(folder)
            copy_project(order.root, order.files, project)
            was_started = clusters.connect(self._cluster.address, project, self._runtime_env)
            self._is_connected = True
            import ray

            self._host = ray.util.get_node_ip_address()
            self._processors = float(ray.cluster_resources().get("CPU", 0.0))
        self._order = order
        if self._cluster.cpus > self._processors:
            raise ConfigurationError(
                f"--osmosis-ray-cpus {self._cluster.cpus:g}: the cluster has "
                f"{self._processors:g} processors in all"
            )
        count = f"{self._processors:g} processors"
        if was_started:
            return f"a Ray cluster of this machine, started for the session ({count})"
        return f"the Ray cluster of {self._host} ({count})"

    @property
    def capacity(self) -> int:
        """How many shards can run at once."""
        return max(1, int(self._processors / self._cluster.cpus))

    def begin(self, listener: Listener) -> None:
        """Listen for shards."""
        order = self._order
        assert order is not None
        self._hub = Hub(self._host, order, listener, on_silence=self._end_silent)

    def start(self, shard: int) -> None:
        """Start the task of a shard, or another one."""
        import ray

        from .task import mark_of, run_shard

        assert self._hub is not None
        if self._is_closing:
            return
        task = ray.remote(run_shard).options(
            num_cpus=self._cluster.cpus,
            max_retries=0,
            scheduling_strategy="SPREAD",
            name=f"osmosis-shard-{shard + 1}",
        )
        reference = task.remote(
            self._hub.invite(shard).to_json(), sys.prefix, mark_of(Path(sys.prefix))
        )
        with self._lock:
            self._tasks[shard] = reference
            future = reference.future()
            self._futures.add(future)
        future.add_done_callback(partial(self._task_ended, shard))

    def send(self, shard: int, kind: str, *values: Any) -> None:
        """Send a message to the process of a shard."""
        if self._hub is not None:
            self._hub.send(shard, kind, *values)

    def close(self) -> None:
        """End all processes: those that do not end when asked are ended by Ray."""
        if not self._is_connected:
            return
        self._is_closing = True
        import ray

        with clusters.as_it_was():
            with self._lock:
                futures = set(self._futures)
            _, slow = concurrent.futures.wait(futures, END_S)
            if slow:
                for reference in self._tasks.values():
                    with contextlib.suppress(Exception):  # it has ended meanwhile
                        ray.cancel(reference, force=True)
            if self._hub is not None:
                self._hub.close()
            ray.shutdown()
        self._is_connected = False

    def _end_silent(self, shard: int) -> None:
        """End a process that says nothing any more; in the hub's thread."""
        import ray

        self._silent.add(shard)
        ray.cancel(self._tasks[shard], force=True)

    def _task_ended(self, shard: int, future: concurrent.futures.Future[int]) -> None:
        """Report that a task has ended; in a thread of Ray's."""
        with self._lock:
            self._futures.discard(future)
        if self._is_closing or self._hub is None:
            return
        error = future.exception()
        if shard in self._silent:
            self._silent.discard(shard)
            assert self._order is not None
            reason = f"its process said nothing for {self._order.silence_s:g} s"
            self._hub.ended(shard, reason, suspect=True)
        elif error is not None:
            self._hub.ended(shard, _why(error), suspect=False)
        else:
            status = future.result()
            told = f"its process {_how(status)}"
            self._hub.ended(shard, told, suspect=status not in (0, NOT_INVITED))


def _how(status: int) -> str:
    if status == NOT_INVITED:
        return "could not reach the driver"
    if status <= 128:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(status - 128).name}"
    return f"was ended by signal {status - 128}"


def _why(error: BaseException) -> str:
    """Return in a few words what Ray says of a task that failed."""
    text = str(error).strip().replace("\n", " ")
    return f"{type(error).__name__}: {text[:300]}"


def _refuse_secrets_in_argv(order: ShardOrder) -> None:
    """Refuse a session whose command line holds a secret: Ray keeps those of its drivers."""
    for name in order.secrets:
        value = order.environment[name]
        if len(value) >= MIN_MASKABLE and any(value in word for word in sys.orig_argv):
            raise ConfigurationError(
                "--osmosis-ray: Ray keeps the command lines of its drivers, and this one holds the "
                f"value of {name}: export it, and name the variable with --osmosis-api-key-env"
            )
