"""The evaluation within one pytest process, chosen once by the part that the process has.

Evaluation                    session/evaluation.py
├── ListingEvaluation         lists the items, and runs nothing
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

from .distributed import processes
from .features.table import FEATURES, features_of
from .options.build_spec import batch_size, build
from .options.reader import OptionReader
from .session import preflight

if TYPE_CHECKING:
    from .session.evaluation import Evaluation
    from .session.seams import Feature
    from .spec import SessionSpec

_LISTING = (
    "collectonly", "setupplan", "setuponly", "showfixtures", "show_fixtures_per_test", "cacheshow",
)  # fmt: skip
"""Options of pytest, as attributes, with which a session runs nothing."""


def choose_processes(config: pytest.Config) -> None:
    """Set how many workers xdist starts, before it reads that."""
    if processes.is_worker(config):
        return
    given = OptionReader(config)
    if _lists_only(config) or any(each.runs_elsewhere(given) for each in FEATURES):
        processes.use_no_workers(config)
    else:
        processes.choose_processes(config, batch_size(config))


def plan(config: pytest.Config) -> SessionSpec:
    """Return the session that options and ini file ask for, as features plan it."""
    return _planned(config, build(config))[0]


def evaluation_for(config: pytest.Config) -> Evaluation:
    """Return the evaluation for the part that this process has."""
    spec, features = _planned(config, preflight.session_of(config))
    if processes.is_worker(config):
        from .distributed.worker import WorkerEvaluation

        return WorkerEvaluation(config, spec, features)
    if _lists_only(config):
        from .session.listing_evaluation import ListingEvaluation

        return ListingEvaluation(config, spec, features)
    if processes.is_controller(config):
        from .distributed.controller import ControllerEvaluation

        return ControllerEvaluation(config, spec, features)
    if "shards" in spec.parts:
        from .distributed.shards.driver_evaluation import DriverEvaluation

        return DriverEvaluation(config, spec, features)
    if (shard := config.stash.get(processes.SHARD, None)) is not None:
        from .distributed.shards.shard_evaluation import ShardEvaluation

        return ShardEvaluation(config, spec, features, shard)
    from .session.reporting_evaluation import LocalEvaluation

    return LocalEvaluation(config, spec, features)


def _planned(config: pytest.Config, spec: SessionSpec) -> tuple[SessionSpec, tuple[Feature, ...]]:
    features = features_of(config, spec)
    with preflight.usage_errors():
        for feature in features:
            spec = feature.plan(spec)
    return spec, features


def _lists_only(config: pytest.Config) -> bool:
    """Return whether the session shows what there is, and runs nothing."""
    return any(getattr(config.option, name, False) for name in _LISTING)
