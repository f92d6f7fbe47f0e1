"""Environments built by uv from folders of wheels that the test writes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from osmosis_executors.job import EvaluationJob, Job, Running
from osmosis_executors.local import LocalExecutor
from osmosis_platform.environments.build import (
    BuildPlace,
    Environments,
    PythonEnvironment,
    reason,
)
from osmosis_platform.environments.project import EnvironmentProblem
from osmosis_platform.environments.recipe import BuildSettings
from osmosis_platform.environments.store import COMPLETE
from tests.support.tiny_wheels import write_sdist_that_runs, write_wheel

PATIENCE_S = 120.0


class Stopped(Exception):
    """The run is not to continue."""


@dataclass
class Counting:
    """The executor of this machine, which keeps what it was given."""

    jobs: list[Job] = field(default_factory=list)

    def start(self, job: Job) -> Running:
        self.jobs.append(job)
        return LocalExecutor().start(job)

    def evaluate(self, evaluation: EvaluationJob) -> Running:
        raise AssertionError


@dataclass
class Builds:
    """A rollout, a folder of wheels, and what builds environments."""

    folder: Path
    rollout: Path
    executor: Counting = field(default_factory=Counting)
    said: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def wheels(self) -> Path:
        return self.folder / "wheels"

    @property
    def environments(self) -> Environments:
        settings = BuildSettings(find_links=(self.wheels,), use_index=False)
        return Environments(self.folder / "data", self.executor, settings)

    @property
    def kept(self) -> list[Path]:
        return [*(self.folder / "data/environments").glob(f"*/{COMPLETE}")]

    def wants(self, *dependencies: str, more: str = "") -> None:
        """Write the pyproject.toml of the rollout."""
        (self.rollout / "pyproject.toml").write_text(
            f'[project]\nname = "r"\nversion = "0"\ndependencies = {[*dependencies]!r}\n{more}'
        )

    def _check(self) -> None:
        if self.stopped.is_set():
            raise Stopped

    @contextmanager
    def built(self, workspace: str = "w1") -> Iterator[PythonEnvironment]:
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        log = self.folder / "log"
        place = BuildPlace(
            workspace, "c" * 40, variables, log, self.said.append, lambda: None, self._check
        )
        with self.environments.of_rollout(self.rollout, place) as environment:
            yield environment

    def python(self, code: str) -> str:
        """Build, and return what code prints in the environment."""
        with self.built() as environment:
            return subprocess.run(
                [environment.python, "-c", code],
                check=True, capture_output=True, text=True, timeout=PATIENCE_S,
                env={"PATH": ""}, cwd=self.folder,
            ).stdout.strip()  # fmt: skip

    def fail(self) -> str:
        with pytest.raises(EnvironmentProblem) as raised, self.built():
            pass
        assert not self.kept
        return str(raised.value)


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    rollout = tmp_path / "answers"
    rollout.mkdir()
    write_wheel(tmp_path / "wheels", "tinylib", "1.5", ["osmosis-ai==0.0.1"])
    write_wheel(tmp_path / "wheels", "tinylib", "2.0")
    write_wheel(tmp_path / "wheels", "pydantic", "1.10.0")
    return Builds(tmp_path, rollout)


def test_what_the_platform_has_is_not_built(builds: Builds):
    with builds.built() as environment:
        assert environment == PythonEnvironment(Path(sys.executable), None)
    builds.wants("osmosis-ai[server, nothing]>=99", "pytest-osmosis", "pydantic>=2")
    with builds.built() as environment:
        assert environment == PythonEnvironment(Path(sys.executable), None)
    message = "\n".join(builds.said)
    assert "there is no pyproject.toml: the platform's own" in message
    assert "osmosis-ai[nothing,server]>=99: the platform's own 0.1.0 is used" in message
    assert "there is no extra nothing here" in message
    assert "pydantic>=2: the platform has 2." in message
    assert "uvicorn>=0.35.0" in message  # of the extra `server`
    assert builds.executor.jobs == []


IMPORTS = """
import tinylib
from importlib.util import find_spec
print(tinylib.VERSION, find_spec("osmosis_ai").origin)
"""


def test_an_environment_is_built_once_and_has_our_own_installation(builds: Builds):
    builds.wants("tinylib<2", "osmosis-ai==0.0.1", "httpx")
    first = builds.python(IMPORTS)
    find = "from importlib.util import find_spec; print(find_spec('osmosis_ai').origin, end='')"
    assert first == f"1.5 {subprocess.check_output([sys.executable, '-I', '-c', find], text=True)}"
    count = len(builds.executor.jobs)
    assert builds.python(IMPORTS) == first
    assert len(builds.executor.jobs) == count
    assert builds.said[-1].startswith("the environment was built before: ")
    with builds.built("another workspace") as environment:
        assert environment.project == builds.rollout / "pyproject.toml"
    assert len(builds.kept) == 2
    for job in builds.executor.jobs:
        assert {*job.environment} <= {
            "PATH", "HOME", "UV_CACHE_DIR", "UV_LINK_MODE", "UV_PYTHON_DOWNLOADS", "NO_COLOR",
        }  # fmt: skip


@pytest.mark.fault("a run writes into the environment that it shares with others")
def test_what_one_run_writes_into_an_environment_reaches_no_other(builds: Builds):
    builds.wants("tinylib<2")
    with builds.built() as environment:
        found = environment.python.parents[1].rglob("tinylib.py")
        site = next(found).parent
        for path in (site, *site.rglob("*")):
            assert not path.stat().st_mode & 0o222
            assert path.is_dir() or path.stat().st_nlink == 1  # no file of the cache
        site.chmod(0o755)  # as its owner can, where runs are not isolated
        (site / "evil.pth").write_text("import os; print('evil')\n")
    assert builds.python(IMPORTS).startswith("1.5 ")
    assert "the environment was changed since it was built" in builds.said
    assert not (site / "evil.pth").exists()
    count = len(builds.executor.jobs)
    assert builds.python(IMPORTS).startswith("1.5 ")
    assert len(builds.executor.jobs) == count


@pytest.mark.fault(
    "a requirement of the rollout is not to be had, conflicts with the plugin, or its "
    "`pyproject.toml` cannot be read"
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("nothere>=1", "Because nothere was not found"),
        ("pydantic<2", "Because you require pydantic<2 and pydantic>=2"),
    ],
)
def test_a_build_that_fails_names_the_requirement_and_leaves_nothing(
    builds: Builds, wanted: str, reason: str
):
    builds.wants(wanted)
    message = builds.fail()
    assert message.startswith("the rollout's environment cannot be built: No solution found")
    assert reason in message
    assert "\n" not in message
    assert not [*(builds.folder / "data/environments").glob("*/*/bin")]


@pytest.mark.fault(
    "a requirement of the rollout is not to be had, conflicts with the plugin, or its "
    "`pyproject.toml` cannot be read"
)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project", "answers/pyproject.toml is no TOML: "),
        ("project = 1", "pyproject.toml: project must be a table"),
        ('[project]\nrequires-python = ">=4"',
         "answers/pyproject.toml: requires-python is '>=4', and the platform has Python 3."),
        ('[project]\nrequires-python = "x"', "requires-python 'x' is no version range"),
        ('[project]\ndynamic = ["dependencies"]', "list them in [project] dependencies"),
        ('[project]\ndependencies = ["a b"]', "'a b' is no requirement"),
        ('[project]\ndependencies = "a"', "project.dependencies must be a list"),
        (f'x = "{"x" * 4 * 1024**2}"', "pyproject.toml has more than 4 MiB"),
    ],
    ids=lambda value: value[-40:],
)  # fmt: skip
def test_a_project_that_cannot_be_built_is_one_sentence(builds: Builds, text: str, message: str):
    (builds.rollout / "pyproject.toml").write_text(text)
    assert message in builds.fail()
    assert builds.executor.jobs == []


@pytest.mark.fault("two runs need the same environment at once, or one is stopped while it builds")
def test_two_runs_that_want_the_same_environment_build_it_once(builds: Builds):
    builds.wants("tinylib")
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(builds.python, [IMPORTS] * 2)]
    assert found[0] == found[1]
    assert sum("venv" in job.words for job in builds.executor.jobs) == 1


WAITS = """
import os, pathlib, time
pathlib.Path({folder!r}, "env").write_text(repr(sorted(os.environ)))
pathlib.Path({folder!r}, "ready").touch()
while True: time.sleep(60)
"""


@pytest.mark.fault("two runs need the same environment at once, or one is stopped while it builds")
@pytest.mark.slow
def test_a_build_that_is_stopped_leaves_nothing_and_has_no_secret(builds: Builds):
    write_sdist_that_runs(builds.wheels, "slowlib", WAITS.format(folder=str(builds.folder)))
    builds.wants("slowlib")
    ready = builds.folder / "ready"

    def stop() -> None:
        while not ready.exists() and not builds.stopped.wait(0.02):
            pass
        builds.stopped.set()

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(stop)
        with pytest.raises(Stopped), builds.built():
            pass
        builds.stopped.set()
        waiting.result(PATIENCE_S)
    assert ready.exists(), (builds.folder / "log").read_text()
    assert not builds.kept
    assert not [*(builds.folder / "data/environments").glob("*/venv")]
    assert "OSMOSIS" not in (builds.folder / "env").read_text()


@pytest.mark.fault(
    "a requirement of the rollout is not to be had, conflicts with the plugin, or its "
    "`pyproject.toml` cannot be read"
)
def test_what_a_kill_has_left_is_not_taken_for_an_environment(builds: Builds):
    store = builds.environments.store
    home = store.folder / "key"
    home.mkdir(parents=True)
    (home / "half").touch()
    with store.used(home.name, lambda home, changed: None, lambda: None):
        assert [each.name for each in home.iterdir()] == [COMPLETE]


@pytest.mark.slow
def test_a_lock_pins_what_is_installed(builds: Builds):
    builds.wants("tinylib", "osmosis-ai", more='requires-python = ">=3.10"\n')
    (builds.rollout / "uv.lock").write_text(
        'version = 1\nrevision = 3\nrequires-python = ">=3.10"\n'
        '[[package]]\nname = "r"\nversion = "0"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "tinylib" }, { name = "osmosis-ai" }]\n'
        + "".join(
            f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
            f'source = {{ registry = "https://index.test/simple" }}\n'
            for name, version in (("tinylib", "1.5"), ("osmosis-ai", "0.0.1"))
        )
    )
    assert builds.python(IMPORTS).startswith("1.5 ")


def test_environments_that_no_run_uses_are_removed_beyond_some(builds: Builds):
    store = replace(builds.environments.store, kept=1)
    for number, key in enumerate(("a", "b", "c", "d")):
        with store.used(key, lambda home, changed: None, lambda: None):
            pass
        os.utime(store.folder / key / COMPLETE, (number, number))
    (store.folder / "d" / COMPLETE).unlink()
    with store.used("a", lambda home, changed: None, lambda: None):
        os.utime(store.folder / "a" / COMPLETE, (0, 0))
        store.sweep()
        assert sorted(each.name for each in store.folder.glob("?")) == ["a", "c"]
        assert (store.folder / "a.lock").exists()
    downloads = store.downloads("w1")
    downloads.mkdir(parents=True)
    (downloads / "x").write_bytes(b"x" * 10)
    builds.environments.sweep()
    assert downloads.exists()
    settings = replace(builds.environments.settings, download_bytes=5)
    replace(builds.environments, settings=settings).sweep()
    assert not downloads.exists()


PRINTED_BY_UV = """\
Using Python 3.11.7 environment at: env
error: No solution found when resolving dependencies
  cause: Because nothere was not found in the provided package locations and roll depends on
      nothere>=1, we can conclude that your requirements are unsatisfiable.
"""
PRINTED = [
    (PRINTED_BY_UV, "No solution found when resolving dependencies cause: Because nothere was not "
     "found in the provided package locations and roll depends on nothere>=1, we can conclude "
     "that your requirements are unsatisfiable."),
    ("one\n\ntwo\n", "two"),
    ("", "it printed nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "message"), PRINTED)
def test_the_reason_is_what_follows_the_first_error(printed: str, message: str):
    assert reason(printed) == message
