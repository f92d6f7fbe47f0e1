"""What features put around the runs of a process. Knows no pytest."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatModel

    from ..run_result import RolloutRecord, RunId
    from ..spec import ModelSpec
    from .suite import Suite


class Scores(Protocol):
    """What a run has scored so far: see `Scoring`."""

    suite: Suite
    scores: dict[str, float]
    errors: dict[str, str]
    reasons: dict[str, list[str]]


class AroundRuns:
    """Stands around the runs of one process; does nothing unless a method is overridden.

    All but `close` are called in the event loop of the runs.
    """

    def begin(self, run: RunId, *, again: bool) -> None:
        """Begin a run, in its task; `again`: only its scores are missing."""

    def join(self, run: RunId) -> None:
        """Have the running code belong to a run that has ended: its test."""

    def model(self, model: ChatModel, spec: ModelSpec) -> ChatModel:
        """Return a model that has been opened, or one around it."""
        return model

    def scoring(self, name: str, scores: Scores) -> AbstractContextManager[None]:
        """Return what is entered while an eval function scores a run."""
        return nullcontext()

    def end(self, record: RolloutRecord) -> None:
        """Take the record of a run that has ended."""

    def close(self) -> str | None:
        """Release everything, after the last run; return a line for the terminal."""
        return None
