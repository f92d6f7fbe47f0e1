"""Rollouts that shards run elsewhere, for a session that records and decides here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Shards:
    """The processes on other machines that run the rollouts."""

    kind: str
    """Its name in the table of executors, and the option that asks for it."""
    address: str
    count: int | None = None
    """How many; None is as many as there is room for."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of the kind's own options, by their names without the kind."""

    @property
    def option(self) -> str:
        """The option that asks for it."""
        return f"--osmosis-{self.kind}"
