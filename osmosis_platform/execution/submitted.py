"""What a run is, read from the database when it is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.platform.workspace import DATASETS
from osmosis_ai.secret import Secret

from ..database.connection import Database
from ..database.models import Dataset, Run, Workspace
from ..datasets.files import DatasetFiles
from ..vault.cipher import Vault
from ..vault.records import resolve


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
