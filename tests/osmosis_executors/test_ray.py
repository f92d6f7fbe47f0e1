"""What the Ray executor does without a cluster: what it refuses, copies, and adds to a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osmosis_executors.job import EvaluationJob, Job
from osmosis_executors.local import LocalExecutor
from osmosis_executors.ray import cluster, fleet
from osmosis_executors.ray.executor import RayExecutor
from osmosis_executors.ray.task import mark_of
from osmosis_executors.table import NoExecutor, choose_executor
from pytest_osmosis.distributed.shards import Shards
from pytest_osmosis.errors import ConfigurationError


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def copied(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("git", [False, True])
def test_the_copy_of_a_project_has_no_file_of_secrets_and_what_is_needed(tmp_path: Path, git: bool):
    root, target = tmp_path / "project", tmp_path / "copy"
    target.mkdir()
    write(
        root, "agent.py", "pkg/tools.py", ".env", ".env.local", "prod.env", "server.key",
        ".venv/lib/x.py", ".osmosis/runs/journal.jsonl", "__pycache__/agent.pyc", ".gitignore",
        "data/rows.jsonl", "data/large.bin",
    )  # fmt: skip
    (tmp_path / "elsewhere.jsonl").write_text("rows")
    (root / "link.py").symlink_to(tmp_path / "elsewhere.jsonl")
    expected = {"agent.py", "pkg/tools.py", "data/rows.jsonl", "given/elsewhere.jsonl"}
    if git:
        (root / ".gitignore").write_text("data/\n.venv/\n")
        subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True)
    else:
        expected.add("data/large.bin")
    needed = {
        "data/rows.jsonl": root / "data/rows.jsonl",
        "given/elsewhere.jsonl": tmp_path / "elsewhere.jsonl",
    }
    assert fleet.copy_project(root, needed, target) == len(expected)
    assert copied(target) == expected


def test_a_project_that_is_too_large_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path / "project", "a.py", "b.py")
    monkeypatch.setattr(fleet, "MAX_FILES", 1)
    with pytest.raises(ConfigurationError, match=r"more than 1 files or 200 MiB; have Git ignore"):
        fleet.copy_project(tmp_path / "project", {}, tmp_path / "copy")


def test_without_the_extra_one_sentence_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(cluster, "_NEEDED", ("a_ray_that_is_not_there",))
    advice = "needs a_ray_that_is_not_there: pip install 'pytest-osmosis[ray]'"
    with pytest.raises(ConfigurationError) as refused:
        fleet.RayFleet(Shards("ray", "auto"))
    assert str(refused.value) == f"--osmosis-ray {advice}"
    with pytest.raises(NoExecutor) as not_chosen:
        choose_executor("ray")
    assert str(not_chosen.value) == f"--executor ray {advice}"


WITHOUT_THE_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(["ray", "cryptography"]))
from osmosis_executors.ray.fleet import RayFleet
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.distributed.shards import Shards
try:
    RayFleet(Shards("ray", "auto"))
except ConfigurationError as error:
    print(error)
"""


def test_the_fleet_of_a_session_needs_nothing_of_the_extra_before_it_says_so():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("--osmosis-ray needs ray and cryptography: pip install"), done


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env_vars: {KEY: sk-1}", "env_vars is set by the evaluation; name variables with"),
        ("working_dir: .", "working_dir is set by the evaluation"),
        ("[1, 2]", "expected names with values"),
        ("a: [", "expected YAML or JSON"),
    ],
)
def test_a_wrong_runtime_environment_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "env.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        cluster.read_runtime_env(path)
    assert message in str(refused.value)
    assert "sk-1" not in str(refused.value)


def test_a_runtime_environment_is_read(tmp_path: Path):
    (tmp_path / "env.yaml").write_text("pip: [numpy]\n")
    assert cluster.read_runtime_env(tmp_path / "env.yaml") == {"pip": ["numpy"]}
    assert cluster.read_runtime_env(None) == {}


@pytest.mark.parametrize(
    ("address", "of_environment", "used"),
    [
        ("auto", None, "local"),
        ("auto", "", "local"),
        ("auto", "ray.example", "ray.example"),
        ("given.example", "ray.example", "given.example"),
        ("given.example", None, "given.example"),
        ("local", "ray.example", "local"),
    ],
)
def test_a_session_uses_the_cluster_that_was_named_or_starts_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    of_environment: str | None,
    used: str,
):
    asked: list[dict[str, Any]] = []
    ray = SimpleNamespace(init=lambda **given: asked.append(given))
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if of_environment is not None:
        monkeypatch.setenv("RAY_ADDRESS", of_environment)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    folder = cluster.connect(address, tmp_path, {"pip": ["numpy"]})
    assert [folder] == ([*tmp_path.glob("osmosis-ray-*")] or [None])
    assert (folder is not None) is (used == "local")
    [given] = asked
    assert given["address"] == used
    assert given["runtime_env"] == {"pip": ["numpy"], "working_dir": str(tmp_path)}


def test_a_submitted_evaluation_gets_the_cluster_and_the_names_of_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    started: list[Job] = []
    monkeypatch.setattr(LocalExecutor, "start", lambda self, job: started.append(job))
    words = ["python", "-m", "pytest", "--osmosis-batch-size=2"]
    environment = {"PATH": "/bin", "HOME": "/h", "KEY": "sk-1", "LEVEL": "INFO"}
    job = Job(words, tmp_path, environment, tmp_path / "out")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    RayExecutor("10.0.0.1:6379", shards=8).evaluate(EvaluationJob(job, ["KEY"]))
    [found] = started
    assert found.words == [
        *words,
        "--osmosis-ray=10.0.0.1:6379",
        "--osmosis-shards=2",
        "--osmosis-ray-env=KEY",
        "--osmosis-ray-env=LEVEL",
    ]
    assert environment.items() <= found.environment.items()
    assert found.environment["RAY_AUTH_MODE"] == "token"


def test_an_environment_is_known_by_its_own_file_alone(tmp_path: Path):
    assert mark_of(tmp_path) == 0
    (tmp_path / "pyvenv.cfg").write_text("")
    assert mark_of(tmp_path) > 0
