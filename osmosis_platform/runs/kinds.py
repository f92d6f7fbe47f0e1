"""The two kinds of runs, as they are stored and as their configs are checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from osmosis_ai.platform import run_kinds
from osmosis_ai.platform.config_models import EvalConfig, RunConfig, TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind(run_kinds.RunKind):
    """A kind of run."""

    name: str
    """As it is stored."""
    config: type[RunConfig]


EVALUATION = RunKind(**asdict(run_kinds.EVALUATION), name="evaluation", config=EvalConfig)
TRAINING = RunKind(**asdict(run_kinds.TRAINING), name="training", config=TrainingConfig)
KINDS = (EVALUATION, TRAINING)
