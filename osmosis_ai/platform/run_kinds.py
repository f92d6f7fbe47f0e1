"""The two kinds of submitted runs: what the API, a platform and people call them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """A kind of run."""

    name: str
    """As a platform stores it."""
    segment: str
    """Of the path, as `eval-runs`."""
    key: str
    """Of the object in an answer, as `eval_run`; its plural names the list."""
    noun: str
    """As `evaluation`."""
    article: str
    group: str
    """Of commands, as `eval`."""
    folder: str
    """Of its config files in a workspace."""

    def subject(self, name: str) -> str:
        """Return what a message calls one of them."""
        return f"{self.noun} {name!r}"


EVALUATION = RunKind(
    name="evaluation",
    segment="eval-runs",
    key="eval_run",
    noun="evaluation",
    article="an",
    group="eval",
    folder="configs/eval",
)
TRAINING = RunKind(
    name="training",
    segment="training-runs",
    key="training_run",
    noun="training run",
    article="a",
    group="train",
    folder="configs/training",
)
KINDS = (EVALUATION, TRAINING)
