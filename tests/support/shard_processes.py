"""Shards as child processes of this machine: what a cluster does, without one."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osmosis_executors.job import Job
from osmosis_executors.local import LocalExecutor, LocalRun
from osmosis_executors.shards.frames import VARIABLE
from osmosis_executors.shards.hub import Hub
from pytest_osmosis.distributed.shards import Shards
from pytest_osmosis.distributed.shards.fleet import Listener, ShardOrder

PATIENCE_S = 60.0


class ProcessFleet:
    """A fleet whose processes share this machine and the project's folder."""

    capacity = 2

    def __init__(self, shards: Shards) -> None:
        self.started: list[int] = []
        self.runs: dict[int, LocalRun] = {}
        self._is_closing = False
        self._threads: list[threading.Thread] = []

    def connect(self, order: ShardOrder) -> str:
        self.order = order
        for place, file in order.files.items():
            if (copy := order.root / place) != file:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        return "processes of this machine"

    def begin(self, listener: Listener) -> None:
        self.hub = Hub(
            "127.0.0.1", self.order, listener, on_silence=lambda shard: self.runs[shard].stop()
        )

    def start(self, shard: int) -> None:
        self.started.append(shard)
        own = {name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"}
        words = [sys.executable, "-m", "osmosis_executors.shards.process"]
        invitation = self.hub.invite(shard).to_json()
        output = self.order.root / f"shard-{shard}.out"
        job = Job(words, self.order.root, {**own, VARIABLE: invitation}, output)
        run = self.runs[shard] = LocalExecutor().start(job)
        thread = threading.Thread(target=self._wait, args=(shard, run))
        self._threads.append(thread)
        thread.start()

    def _wait(self, shard: int, run: LocalRun) -> None:
        while (status := run.wait(0.1)) is None:
            if self._is_closing:
                run.stop()
        if not self._is_closing:
            self.hub.ended(shard, f"its process ended with {status}", suspect=status != 0)

    def send(self, shard: int, kind: str, *values: Any) -> None:
        self.hub.send(shard, kind, *values)

    def end(self) -> None:
        pass

    def close(self) -> None:
        self._is_closing = True
        for thread in self._threads:
            thread.join(PATIENCE_S)
        if hasattr(self, "hub"):
            self.hub.close()


def outputs(folder: Path) -> Sequence[str]:
    """What the processes of the shards have printed."""
    return [path.read_text() for path in sorted(folder.glob("shard-*.out"))]
