"""Early stopping at the seams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...session.seams import Feature, Halt
from .stopping import EarlyStopping

if TYPE_CHECKING:
    import pytest

    from ...run_result import RunResult
    from ...session.seams import DecidingGates
    from ...spec import SessionSpec


class EarlyStoppingFeature(Feature):
    """Follows the gates of a session while runs end."""

    def __init__(self, config: pytest.Config, part: bool) -> None:
        self._has_intervals = False
        """Gates that an interval decides are open to the end."""
        self._stopping: EarlyStopping | None = None

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Take note of what decides."""
        self._has_intervals = bool(spec.deciding.confidence)
        return spec

    def follow(self, gates: DecidingGates, halt: Halt) -> None:
        """Begin to follow the gates."""
        if not self._has_intervals:
            self._stopping = EarlyStopping(gates, halt=halt)

    def run_ended(self, run: RunResult) -> None:
        """Look whether a gate is still open."""
        if self._stopping is not None:
            self._stopping.ended(run)
