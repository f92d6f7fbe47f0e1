"""The programs that one run starts, held as the operator wants it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import Job

from ..environments.build import BuildPlace
from .orders import child_environment
from .run_folder import RunFolder
from .services import Submitted

OWN_PYTHON = Path(sys.executable)
"""The interpreter of the platform."""


@dataclass(frozen=True, slots=True)
class Children:
    """Makes the jobs of a run in its folder."""

    run_folder: RunFolder
    run: Submitted
    confinement: Confinement
    grace_s: float

    def make_folders(self) -> None:
        """Make the folders of the run, where its programs can write."""
        self.run_folder.make()
        if self.confinement.user is not None:
            self.run_folder.let_in()
            self.confinement.give(*self.run_folder.written)

    def put_dataset(self) -> Path:
        """Put the dataset where the programs can read it; return the path from the work tree."""
        name = self.run.experiment["dataset"]
        copied = self.confinement.is_apart
        path = self.run_folder.put_dataset(self.run.dataset, name, copied=copied)
        self.confinement.let_read(
            self.run_folder.datasets
        )  # no more: the platform writes there again
        return path

    def job(
        self,
        words: Sequence[str],
        printed: Path,
        python: Path = OWN_PYTHON,
        *,
        errors: Path | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Job:
        """Return a program with the environment of the run, and more variables."""
        variables = child_environment(
            self.run_folder, self.run.env, self.run.secrets, python=python
        )
        job = Job(
            words,
            self.run_folder.source,
            {**variables, **(more or {})},
            printed,
            errors,
            lock=self.run_folder.lock,
            grace_s=self.grace_s,
        )
        return self._held(job, self._home_of(python))

    def build_place(
        self,
        say: Callable[[str], None],
        follow: Callable[[], None],
        check: Callable[[], None],
    ) -> BuildPlace:
        """Return where an environment is built: its programs get no secret."""
        return BuildPlace(
            workspace_id=self.run.workspace_id,
            commit=self.run_folder.commit or "",
            variables=child_environment(self.run_folder, {}, ()),
            log=self.run_folder.build_log,
            say=say,
            follow=follow,
            check=check,
            confine=self._held,
            give=self.confinement.give,
            take_back=self.confinement.take_back,
            scratch=self.run_folder.temporary,
        )

    def _held(self, job: Job, environment: Path) -> Job:
        places = {
            "data": self.run_folder.data,
            "room": self.run_folder.folder,
            "environment": environment,
        }
        return self.confinement.applied(job, places)

    def _home_of(self, python: Path) -> Path:
        """Return the folder of a built environment, else that of the platform's own."""
        environments = self.run_folder.data / "environments"
        return python.parents[2] if environments in python.parents else Path(sys.prefix)
