"""Has the environment of a rollout: the platform's own, one that is there, or a new one."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from osmosis_executors.job import Executor, Job, JobLimits, wait_for_end
from pytest_osmosis.escaping import shortened

from ..locks import locked, locked_if_free
from .installed import installed
from .project import FILE_NAME, EnvironmentProblem, Project, Wanted, read_project, select
from .recipe import REQUIREMENTS, BuildSettings, Recipe, environment_key
from .sealing import seal
from .store import FOLDER, VENV, EnvironmentStore

_GRACE_S = 1.0
_END_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class BuildPlace:
    """The run that an environment is built for."""

    workspace_id: str
    commit: str
    variables: Mapping[str, str]
    """The whole environment of the commands: no secret is in it."""
    log: Path
    """The file of what they print."""
    say: Callable[[str], None]
    follow: Callable[[], None]
    """Called now and then while they print."""
    check: Callable[[], None]
    """Raises where the run is not to continue."""
    confine: Callable[[Job, Path], Job] = lambda job, home: job
    """Hold a command that may run code of packages."""
    give: Callable[[Path], None] = lambda folder: None
    """Let such commands write into a folder."""
    take_back: Callable[[Path], None] = lambda folder: None
    """Let them write into it no longer."""
    scratch: Path | None = None
    """Another folder that they write into; None: the environment's own."""


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """The interpreter that a rollout runs in."""

    python: Path
    project: Path | None
    """The pyproject.toml that it was built from; None: the platform's own."""


@dataclass(frozen=True, slots=True)
class Environments:
    """Builds and keeps environments."""

    data: Path
    executor: Executor
    settings: BuildSettings = field(default_factory=BuildSettings)

    @property
    def store(self) -> EnvironmentStore:
        """Where they are kept."""
        return EnvironmentStore(self.data.absolute() / FOLDER, self.settings.kept)

    @contextmanager
    def of_rollout(self, rollout: Path, place: BuildPlace) -> Iterator[PythonEnvironment]:
        """Have the environment of a rollout's folder, as long as the run uses it.

        Raises:
            EnvironmentProblem: where it cannot be built.
            Exception: what the check of the place raises.
        """
        project = read_project(rollout)
        if project is None:
            place.say(f"there is no {FILE_NAME}: the platform's own Python environment is used")
            yield PythonEnvironment(Path(sys.executable), None)
            return
        own = installed()
        wanted = select(project.requirements, own)
        for line in wanted.notes:
            place.say(line)
        if not wanted.requirements and not project.has_sources and project.lock is None:
            place.say("the platform's own Python environment has all that it needs")
            yield PythonEnvironment(Path(sys.executable), None)
            return
        key = environment_key(place.workspace_id, project, own, self.settings, place.commit)
        built: list[str] = []

        def build(home: Path, was_changed: bool) -> None:
            built.append(key)
            if was_changed:
                place.say("the environment was changed since it was built")
            self._build(home, project, wanted, place)

        with self.store.used(key, build, place.check) as home:
            if built:
                self.sweep()
            else:
                place.say(f"the environment was built before: {key}")
            yield PythonEnvironment(home / VENV / "bin" / "python", project.file)

    def _recipe(self, home: Path, place: BuildPlace) -> Recipe:
        downloads = self.store.downloads(place.workspace_id)
        return Recipe(home, self.settings.uv, self.settings, downloads, place.scratch or home)

    def _build(self, home: Path, project: Project, wanted: Wanted, place: BuildPlace) -> None:
        recipe = self._recipe(home, place)
        place.say(f"building the environment {home.name}")
        recipe.downloads.mkdir(mode=0o700, parents=True, exist_ok=True)
        recipe.downloads.parent.chmod(0o711)
        lock = _lock_of(recipe.downloads)
        try:
            with locked(lock, alone=False, check=place.check):
                recipe.write_lists(wanted, installed())
                shutil.rmtree(recipe.venv, ignore_errors=True)
                place.give(recipe.downloads)
                self._run(recipe.make_venv(), home, recipe, place)
                self._run(recipe.lay_on(installed()), home, recipe, place)
                lists = self._lists(recipe, project, place)
                self._run(recipe.install(lists), project.file.parent, recipe, place)
        finally:
            with locked_if_free(lock) as is_free:
                if is_free:  # else the last build that uses them does it
                    place.take_back(recipe.downloads)
        seal(recipe.venv, home / VENV)
        place.say("the environment is built")

    def _lists(self, recipe: Recipe, project: Project, place: BuildPlace) -> list[Path]:
        """Return the files of what is to be installed."""
        requirements = recipe.home / REQUIREMENTS
        if project.lock is not None:
            self._run(recipe.export(), project.file.parent, recipe, place)
            return [recipe.exported, requirements]
        return [project.file, requirements] if project.has_sources else [requirements]

    def _run(self, words: Sequence[str], folder: Path, recipe: Recipe, place: BuildPlace) -> None:
        job = Job(
            words,
            folder,
            {**place.variables, **recipe.variables},
            place.log,
            lock=recipe.home.with_suffix(".job"),
            limits=JobLimits(),
            grace_s=_GRACE_S,
        )

        def look() -> None:
            place.follow()
            place.check()

        running = self.executor.start(place.confine(job, recipe.home))
        try:
            status = wait_for_end(running, look, time_s=self.settings.time_s, grace_s=_GRACE_S)
        finally:
            place.follow()
        if status is None:
            raise EnvironmentProblem(f"the build took longer than {self.settings.time_s:g} s")
        if status:
            raise EnvironmentProblem(
                f"the rollout's environment cannot be built: {reason(_end_of(place.log))}"
            )

    def sweep(self) -> None:
        """Remove what is not kept: environments, and downloads that have become too many."""
        self.store.sweep()
        for folder in self.store.downloads("").glob("*/"):
            with locked_if_free(_lock_of(folder)) as is_free:
                if is_free and _bytes_in(folder) > self.settings.download_bytes:
                    shutil.rmtree(folder, ignore_errors=True)


def _lock_of(downloads: Path) -> Path:
    return downloads.with_name(f"{downloads.name}.lock")


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _end_of(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _END_BYTES))
        return file.read().decode("utf-8", "replace")


_MAX_LENGTH = 800
_MISTAKE = re.compile(r"^(?:error: | {1,2}× )", re.MULTILINE)
"""Where uv begins to say what is wrong."""


def reason(printed: str) -> str:
    """Return the reason that the output of a build ends with, on one line."""
    found = _MISTAKE.search(printed)
    text = " ".join(printed[found.end() :].split()) if found else _last_line(printed)
    return shortened(text, _MAX_LENGTH)


def _last_line(printed: str) -> str:
    return (printed.strip().splitlines() or ["it printed nothing"])[-1]
