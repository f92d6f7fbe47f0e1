"""The executor of a platform whose evaluations run on a Ray cluster.

An evaluation's driver is a child process of this machine, with the journal and the report; its
rollouts run in shards on the cluster. Other programs run on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_osmosis.options.values import UNNAMED_ADDRESS

from ..job import EvaluationJob
from ..local import LocalExecutor, LocalRun

_OF_THIS_MACHINE = (
    "PATH",
    "HOME",
    "TMPDIR",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
)
_BATCH = "--osmosis-batch-size="
_TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
_TOKEN = Path(".ray", "auth_token")


class RayExecutor(LocalExecutor):
    """Runs evaluations on a cluster, and other programs on this machine."""

    def __init__(self, address: str | None = None, shards: int | None = None) -> None:
        """Use the cluster at this address, and at most so many shards an evaluation."""
        self._address = address or UNNAMED_ADDRESS
        self._shards = shards

    def evaluate(self, evaluation: EvaluationJob) -> LocalRun:
        """Start the driver of an evaluation."""
        job = evaluation.job
        return self.start(
            replace(
                job,
                words=[*job.words, *self._words(evaluation)],
                environment={**_of_ray(), **job.environment},
                orphan_grace_s=job.grace_s,  # a driver ends its shards
            )
        )

    def _words(self, evaluation: EvaluationJob) -> Iterator[str]:
        yield f"--osmosis-ray={self._address}"
        if self._shards is not None:
            yield f"--osmosis-shards={min(self._shards, _batch_size(evaluation))}"
        for name in evaluation.job.environment:
            if name not in _OF_THIS_MACHINE:  # what the submission sets: shards have it too
                yield f"--osmosis-ray-env={name}"


def _batch_size(evaluation: EvaluationJob) -> int:
    sizes = [word.removeprefix(_BATCH) for word in evaluation.job.words if word.startswith(_BATCH)]
    return int(sizes[-1]) if sizes else 1


def _of_ray() -> dict[str, str]:
    """Return the variables by which a driver reaches the cluster; its home is not this one's."""
    found = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    token = Path.home() / _TOKEN
    if _TOKEN_PATH not in found and token.is_file():
        found[_TOKEN_PATH] = str(token)
    return found
