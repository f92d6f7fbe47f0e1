"""What every execution uses, and how one fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import Executor

from ..environments.build import Environments
from ..vault.cipher import Vault
from .checkout import CheckoutLimits
from .claims import Claims


class RunFailed(Exception):
    """The run cannot be executed; its reason, a sentence for its user."""

    def __init__(self, message: str, step: str, *, status: str = "failed") -> None:
        super().__init__(message)
        self.step = step
        self.status = status
        """The run's, from now on."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """The operator's command for training runs."""

    words: tuple[str, ...]
    origins: tuple[str, ...] = ()
    """Where it serves generation, as http://10.0.0.7:8000; none: a free port of loopback."""


@dataclass(frozen=True, slots=True)
class Services:
    """What every execution uses."""

    data: Path
    claims: Claims
    vault: Vault
    executor: Executor
    shutdown: threading.Event
    environments: Environments | None = None
    """None: every rollout runs in the platform's own environment."""
    confinement: Confinement = field(default_factory=Confinement)
    """Of every program that runs code of users."""
    trainer: Trainer | None = None
    """None: training runs are not executed."""
    keep_days: int = 30
    """How long journals, conversations and outputs of runs that have ended are kept."""
    checkout: CheckoutLimits = field(default_factory=CheckoutLimits)
    grace_s: float = 4.0
    """How long an evaluation may take to end after it was asked to."""
