"""The evaluation of a session whose rollouts are run by shards on other machines.

It collects, records, decides and reports as in one process: only where the results of its items
come from is different.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...dataset.sampling import place_in
from ...escaping import counted
from ...items.runner import Rollouts
from ...rollouts.cached import ResultCache
from ...run_result import RunId
from ...session import preflight
from ...session.reporting_evaluation import LocalEvaluation
from ...session.selection import selection_of
from ...spec import Cluster
from ...storage.source_digest import input_digests
from .fleet import Fleet, fleet_of
from .order import order_of
from .rollouts import Loaded, RemoteRollouts
from .shards import ShardPlan


class DriverEvaluation(LocalEvaluation):
    """An evaluation that has shards run its rollouts."""

    _fleet: Fleet | None = None
    _remote: RemoteRollouts | None = None
    _known: Loaded
    """Digests of the files that the session began with."""
    _count = 0
    """How many shards there are, once that is known."""
    _place = ""
    """Where they are."""

    @property
    def cluster(self) -> Cluster:
        """What was asked for."""
        assert self.spec.cluster is not None
        return self.spec.cluster

    def start(self) -> None:
        """Check everything, then connect to the cluster."""
        with preflight.usage_errors():
            self._fleet = fleet_of(self.cluster.kind)(self.cluster)
        super().start()
        if not selection_of(self.config).runs or self._is_done():
            return
        self._known = self._loaded()
        with preflight.usage_errors():
            self._place = self._fleet.connect(order_of(self.config, self.spec, self._files()))
        self._count = self._shards()

    def _is_done(self) -> bool:
        """Return whether earlier sessions have left a result for every run: no cluster is used."""
        return all(
            self.store.has(RunId(name, row, run))
            for name, suite in self.suites.items()
            for row in suite.dataset.row_indices
            for run in suite.runs_of(row)
        )

    def header(self) -> list[str]:
        """Return the lines of the session's header, with where the shards are."""
        if not self._count:
            return super().header()
        shards = counted(self._count, "shard")
        return [*super().header(), f"osmosis: {shards} on {self._place}"]

    def collected(self, items: list[pytest.Item]) -> None:
        """Count the selected runs; refuse tests, which run here."""
        if self._marked():
            raise pytest.UsageError(
                "--osmosis-ray runs the evaluations of data files, not test functions with the "
                "marker osmosis: leave those out with --osmosis-only"
            )
        super().collected(items)

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the shards at once: what ordinary tests patch is not theirs."""
        super().begin(items)
        if self._remote is not None and self.runner is not None:
            self.runner.begin_all()

    def _shards(self) -> int:
        """Return how many shards there are: no more than rows, or than the batch size."""
        assert self._fleet is not None
        rows = max(len(suite.dataset) for suite in self.suites.values())
        wanted = self.cluster.shards or self._fleet.capacity
        return max(1, min(wanted, self.spec.batch_size, rows))

    def _rollouts(self, cache: ResultCache) -> Rollouts:
        assert self._fleet is not None
        if not self._count:
            return super()._rollouts(cache)
        self._remote = RemoteRollouts(
            self.suites,
            self._fleet,
            ShardPlan(self._count, self.spec.batch_size, self._shard_of),
            sink=self.sink,
            cache=cache,
            loaded=self._known,
            keeps_messages=bool(self.config.hook.pytest_osmosis_run_result.get_hookimpls()),
        )
        self._fleet.begin(self._remote)
        return self._remote

    def cancel(self) -> None:
        """Cancel what is in flight, and take what shards had finished: it is reported too."""
        super().cancel()
        if self._remote is not None:
            self._remote.take_last()
        if self._fleet is not None:
            self._fleet.end()  # while reports are written

    def _shard_of(self, run: RunId) -> int:
        """Return the shard that `--osmosis-shard` would put the run's row into."""
        rows = self.suites[run.suite].dataset.row_indices
        return place_in(rows)(run.row_index) % self._count

    def _files(self) -> Iterator[Path]:
        root = self.config.rootpath
        inputs = input_digests(self.spec.inputs, [root])
        for name in (*(name for files in self._known.values() for name in files), *inputs):
            if (root / name).is_file():
                yield root / name

    def close(self) -> None:
        """End what runs elsewhere, then close the rest."""
        try:
            super().close()
        finally:
            fleet, self._fleet = self._fleet, None
            if fleet is not None:
                fleet.close()
