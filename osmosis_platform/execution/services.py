"""What an execution uses: services, and the run as it was submitted; and how one fails."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmosis_ai.platform.workspace import DATASETS
from osmosis_ai.secret import Secret
from osmosis_executors.confinement import Confinement
from osmosis_executors.job import Executor

from ..database.connection import Database
from ..database.models import Dataset, Run, Workspace
from ..datasets.files import DatasetFiles
from ..environments.build import Environments
from ..vault.cipher import Vault
from ..vault.records import resolve
from .checkout import CheckoutLimits
from .claims import Claims

MOST_RUNS = 1_000_000


class RunFailed(Exception):
    """The run cannot be executed; its reason, a sentence for its user."""

    def __init__(self, message: str, step: str, *, status: str = "failed") -> None:
        super().__init__(message)
        self.step = step
        self.status = status
        """The run's, from now on."""


@dataclass(frozen=True, slots=True)
class TrainerCommand:
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
    trainer: TrainerCommand | None = None
    """None: training runs are not executed."""
    keep_days: int = 30
    """How long journals, conversations and outputs of runs that have ended are kept."""
    checkout: CheckoutLimits = field(default_factory=CheckoutLimits)
    grace_s: float = 4.0
    """How long an evaluation may take to end after it was asked to."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A run with everything that it names."""

    kind: str
    submission: Mapping[str, Any]
    workspace_id: str
    repository: str
    clone_url: str | None
    dataset: Path
    """Its file."""
    secrets: Sequence[Secret]
    missing: Sequence[str]
    """Names of secrets that are not there any more."""
    begun_with: str | None = None
    """The commit of an earlier attempt."""

    @property
    def experiment(self) -> Mapping[str, Any]:
        """Its `experiment_config`."""
        found: Mapping[str, Any] = self.submission["experiment_config"]
        return found

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that the config sets."""
        return self.submission.get("env_config") or {}

    @property
    def most_runs(self) -> int:
        """How many runs of rows it has at most."""
        given = self.submission.get("evaluation_config") or {}
        n: int = given.get("n", 1)
        rows: int = given.get("limit", MOST_RUNS)
        return min(MOST_RUNS, n * rows)

    @property
    def commit(self) -> str | None:
        """The commit that it asks for, or has begun with; None: the newest of the branch."""
        return self.experiment.get("commit_sha") or self.begun_with

    @property
    def branch(self) -> str | None:
        """The branch that it asks for; None: the repository's default one."""
        found: str | None = self.experiment.get("branch")
        return found

    @property
    def dataset_name(self) -> str:
        """The file of the dataset, as users know it."""
        return f"{DATASETS}/{self.experiment['dataset']}{self.dataset.suffix}"


def read_submitted(database: Database, vault: Vault, data: Path, run_id: str) -> Submitted:
    """Return a run; its secrets are those of this moment."""
    with database.reading() as session:
        run = session.get_one(Run, run_id)
        workspace = session.get_one(Workspace, run.workspace_id)
        dataset = session.get_one(Dataset, run.dataset_id)
        names = run.submission.get("secrets", {}).get("required", [])
        secrets, missing = resolve(session, vault, run.workspace_id, run.creator_id, names)
        return Submitted(
            kind=run.kind,
            submission=run.submission,
            workspace_id=workspace.id,
            repository=workspace.repository,
            clone_url=workspace.clone_url,
            dataset=DatasetFiles(data.absolute(), dataset.id, dataset.extension).rows,
            secrets=secrets,
            missing=missing,
            begun_with=(run.results or {}).get("commit_sha"),
        )
