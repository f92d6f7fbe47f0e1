"""The two kinds of runs: their names on the wire, their config model, their statuses."""

from __future__ import annotations

from dataclasses import dataclass

from osmosis_ai.platform.config_models import EvalConfig, RunConfig, TrainingConfig

ENDED = frozenset({"finished", "failed", "stopped", "crashed", "killed"})


@dataclass(frozen=True, slots=True)
class RunKind:
    """A kind of run."""

    name: str
    """As it is stored."""
    segment: str
    """Of the path, as `eval-runs`."""
    key: str
    """Of the object in an answer, as `eval_run`."""
    config: type[RunConfig]

    @property
    def words(self) -> str:
        """What a message calls it."""
        return "evaluation" if self.name == "evaluation" else "training run"


EVALUATION = RunKind(
    "evaluation",
    "eval-runs",
    "eval_run",
    EvalConfig,
)
TRAINING = RunKind(
    "training",
    "training-runs",
    "training_run",
    TrainingConfig,
)
KINDS = (EVALUATION, TRAINING)
