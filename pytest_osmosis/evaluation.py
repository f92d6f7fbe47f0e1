"""The evaluation within one pytest process, chosen once by the part that the process has.

Evaluation                    session/evaluation.py
├── ReportingEvaluation       checks, records, evaluates gates, writes reports
│   ├── LocalEvaluation       and runs the items itself
│   │   └── DriverEvaluation  and has shards run their rollouts
│   └── ControllerEvaluation  and has xdist's workers run them
├── WorkerEvaluation          runs items, and sends what becomes of them
└── ShardEvaluation           runs rollouts, and sends what becomes of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .distributed.processes import is_controller, is_worker
from .distributed.shards.shard_plugin import SHARD
from .features.table import features_of
from .options.reader import lists_only
from .session import preflight

if TYPE_CHECKING:
    from .session.evaluation import Evaluation


def evaluation_for(config: pytest.Config) -> Evaluation:
    """Return the evaluation for the part that this process has."""
    spec = preflight.session_of(config)
    features = features_of(config, spec)
    with preflight.usage_errors():
        for feature in features:
            spec = feature.plan(spec)
    if is_controller(config):
        from .distributed.controller import ControllerEvaluation

        return ControllerEvaluation(config, spec, features)
    if spec.shards is not None and not lists_only(config):
        from .distributed.shards.driver_evaluation import DriverEvaluation

        return DriverEvaluation(config, spec, features)
    if is_worker(config):
        from .distributed.worker import WorkerEvaluation

        return WorkerEvaluation(config, spec, features)
    if (shard := config.stash.get(SHARD, None)) is not None:
        from .distributed.shards.shard_evaluation import ShardEvaluation

        return ShardEvaluation(config, spec, features, shard)
    from .session.reporting_evaluation import LocalEvaluation

    return LocalEvaluation(config, spec, features)
