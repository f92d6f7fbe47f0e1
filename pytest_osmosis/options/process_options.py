"""The options of processes -> the batch size, and the cluster that runs the rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ..spec import Cluster
from .reader import OptionReader

_OF_CLUSTER = ("shards", "ray-cpus", "ray-env", "ray-runtime-env")


def batch_size(config: pytest.Config) -> int:
    """Return B of `--batch-size`, else W of xdist's `-n W`, else 1; no more than named items."""
    workers = getattr(config.option, "numprocesses", None)
    known = workers if isinstance(workers, int) and workers > 0 else 1
    batch = int(OptionReader(config)("batch-size") or known)
    return min(batch, len(config.args)) if _names_single_items(config.args) else batch


def _names_single_items(arguments: Sequence[str]) -> bool:
    """Return whether each argument is the node id of one run."""
    return bool(arguments) and all("::" in text and text.endswith("]") for text in arguments)


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
