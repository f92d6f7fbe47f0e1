"""The options of processes -> the batch size, and the cluster that runs the rollouts."""

from __future__ import annotations

import pytest

from ..spec import Cluster
from .reader import OptionReader

_OF_CLUSTER = ("shards", "ray-cpus", "ray-env", "ray-runtime-env")


def batch_size(config: pytest.Config) -> int:
    """Return B of `--batch-size`, else W of xdist's `-n W`, else 1."""
    workers = getattr(config.option, "numprocesses", None)
    known = workers if isinstance(workers, int) and workers > 0 else 1
    return int(OptionReader(config)("batch-size") or known)


def cluster(given: OptionReader, batch: int) -> Cluster | None:
    """Return the cluster that runs the rollouts; refuse what does not go with one."""
    address, shards = given("ray"), given("shards")
    if address is None:
        for name in _OF_CLUSTER:
            if given.raw(name) is not None:
                raise pytest.UsageError(f"{given.spelled(name)} needs --osmosis-ray too")
        return None
    if given.raw("rescore") is not None:
        raise pytest.UsageError(
            f"{given.spelled('rescore')} does not go with {given.spelled('ray')}: leave one out"
        )
    if shards is not None and shards > batch:
        raise pytest.UsageError(
            f"{given.spelled('shards')} {shards}: each shard has a part of the batch size, which "
            f"is {batch}; give --osmosis-batch-size {shards} or more, or fewer shards"
        )
    runtime_env = given("ray-runtime-env")
    return Cluster(
        address=address,
        shards=shards,
        cpus=given("ray-cpus"),
        variables=given("ray-env"),
        runtime_env=given.resolved("ray-runtime-env", runtime_env) if runtime_env else None,
    )
