"""Submitted evaluations that are executed: to their end, until they are stopped, after a kill."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from osmosis_executors.job import Executor
from osmosis_executors.local import LocalExecutor
from osmosis_platform.database.models import Workspace
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.environments.build import Environments
from osmosis_platform.environments.recipe import BuildSettings
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.scheduler import Scheduler
from osmosis_platform.execution.services import Services, TrainerCommand
from tests.support.platform_server import PlatformServer, serving
from tests.support.pushed_workspace import commit, git, make_workspace
from tests.support.submitted_runs import log_of, run_of
from tests.support.tiny_wheels import write_wheel

pytestmark = pytest.mark.slow
EVALS = "/api/cli/eval-runs"
SECRET = "sk-of-the-run-0123456789"
PATIENCE_S = 120.0
FIRST = 2
"""Rollouts that end before the others wait."""
WAITS = """
        import asyncio, os, pathlib

        folder = pathlib.Path(os.environ["FOLDER"])
        with (folder / "starts").open("a") as file:
            file.write(ctx.prompt[-1]["content"].splitlines()[0] + chr(10))
        while len((folder / "starts").read_text().splitlines()) > 2:
            if (folder / "gate").exists():
                break
            await asyncio.sleep(0.02)
"""


def until(is_so: Callable[[], bool], describe: Callable[[], object]) -> None:
    """Return once it is so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, describe()
        time.sleep(0.05)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose rollout asks the embedded model, and waits in runs beyond the first two."""
    root = make_workspace(tmp_path, monkeypatch)
    monkeypatch.chdir(root)
    assert run(cli, ["rollout", "init", "answers"]) == 0
    config = root / "configs/eval/answers.toml"
    text = config.read_text().replace("openai/gpt-5-mini", "embedded")
    text = text.replace("OPENAI_API_KEY", "SOME_KEY").replace("# limit = 200", "limit = 5")
    config.write_text(f'{text}\n[env]\nFOLDER = "{tmp_path}"\n')
    main = root / "rollouts/answers/main.py"
    before, after = main.read_text().split("        rollout = get_rollout_context()", 1)
    main.write_text(f"{before}{WAITS}        rollout = get_rollout_context(){after}")
    commit(root)
    git(root, "push", "--quiet", "origin", "main")
    return root


def starts(folder: Path) -> list[str]:
    """The prompts of the rollouts that were started."""
    path = folder / "starts"
    return path.read_text().splitlines() if path.exists() else []


def prepare(platform: PlatformServer, workspace: Path) -> None:
    """Give a platform the dataset, the secret and the repository of the workspace."""
    rows = (workspace / "datasets/answers.jsonl").read_bytes()
    count = rows.count(b"\n")
    dataset_id = platform.add_dataset("answers", row_count=count, file_size=len(rows))
    files = DatasetFiles(platform.settings.data, dataset_id, "jsonl")
    files.make()
    files.rows.write_bytes(rows)
    platform.add_secret("SOME_KEY", value=SECRET)
    with platform.database.writing() as session:
        found = session.get_one(Workspace, platform.account.workspace_id)
        found.clone_url = str(workspace.parent / "bare.git")


def submit(platform: PlatformServer, folder: Path) -> str:
    """Submit the workspace's evaluation, whose rollouts look into the folder; return its id."""
    submission = {
        "experiment_config": {
            "rollout": "answers", "entrypoint": "main.py", "model_path": "embedded",
            "dataset": "answers",
        },
        "evaluation_config": {"limit": 5},
        "env_config": {"FOLDER": str(folder)},
        "secrets": {"required": ["SOME_KEY"]},
    }  # fmt: skip
    answer = httpx.post(
        platform.url + EVALS, json=submission, headers=platform.account.headers, timeout=PATIENCE_S
    )
    run_id: str = answer.json()["id"]
    return run_id


@contextmanager
def executing(platform: PlatformServer, executor: Executor | None = None) -> Iterator[Scheduler]:
    """Execute what a platform is given."""
    kinds = ("evaluation", "training")
    claims = Claims(platform.database, "scheduler", lease_s=600, kinds=kinds)
    data = platform.settings.data
    builds = BuildSettings((data.parent / "wheels",), use_index=False)
    services = Services(
        data,
        claims,
        platform.vault,
        executor or LocalExecutor(),
        threading.Event(),
        Environments(data, LocalExecutor(), builds),
        trainer=TrainerCommand((sys.executable, str(data.parent / "trainer.py"))),
        grace_s=PATIENCE_S,
    )
    scheduler = Scheduler(services, max_runs=1)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


@pytest.fixture
def platform(workspace: Path, tmp_path: Path) -> Iterator[PlatformServer]:
    with serving(tmp_path / "data") as server:
        prepare(server, workspace)
        with executing(server):
            yield server


@pytest.fixture
def osmosis(
    platform: PlatformServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """The command as the user of the platform, which must succeed."""
    for name, value in platform.environment.items():
        monkeypatch.setenv(name, value)

    def command(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        assert run(cli, words) == status, capsys.readouterr()
        said = capsys.readouterr()
        assert SECRET not in said.out + said.err
        return said.out

    return command


def test_a_submitted_evaluation_has_the_figures_of_a_local_one(
    osmosis: Callable[..., str], platform: PlatformServer, workspace: Path, tmp_path: Path
):
    (tmp_path / "gate").touch()
    config = "configs/eval/answers.toml"
    name = json.loads(osmosis("eval", "submit", config, "--yes", "--json"))["eval_run"]["name"]
    shown = osmosis("eval", "info", name, "--watch")
    assert f"{name}  finished" in shown
    assert f"commit      {git(workspace, 'rev-parse', 'HEAD')}" in shown
    osmosis("eval", "download", name, "-o", "theirs.json", "--conversations")
    environment = {**os.environ, "SOME_KEY": SECRET}
    words = ["eval", config, "--rows", "@theirs.json", "-o", "ours.json"]
    subprocess.run(
        [sys.executable, "-m", "osmosis_cli", *words],
        env=environment,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    theirs, ours = (json.loads(Path(file).read_text()) for file in ("theirs.json", "ours.json"))
    assert theirs["summary"]["eval_fns"] == ours["summary"]["eval_fns"]
    assert [_runs(row) for row in theirs["rows"]] == [_runs(row) for row in ours["rows"]]
    lines = Path("theirs.trajectories.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["row_index"] for line in lines) == [0, 1, 2, 3, 4]
    assert SECRET not in "".join(lines)
    assert theirs["config"]["data"] == theirs["config"]["name"] == "datasets/answers.jsonl"
    assert theirs["config"]["data_sha256"] == ours["config"]["data_sha256"]
    for path in (tmp_path / "data" / "runs").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    logs = osmosis("eval", "logs", name)
    assert [word for word in ("clone:", "build:", "run:", "report:") if word not in logs] == []
    assert str(tmp_path / "data") not in logs


def _runs(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    kept = ("run_index", "success", "scores", "passed", "tokens")
    return [(row["row_index"], *(run[name] for name in kept)) for run in row["runs"]]


MULTIPLY = """
import uvicorn

import tinylib
from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.backend.local import LocalBackend
from osmosis_ai.rollout.context import AgentWorkflowContext, GraderContext
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.server import create_rollout_server


class Multiply(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext):
        left, right = ctx.metadata["left"], ctx.metadata["right"]
        found = left * right + (left == 3)  # it is not good at three
        return [
            {"role": "user", "content": f"{left} times {right}, says {tinylib.VERSION}"},
            {"role": "assistant", "content": f"#### {found}"},
        ]


class Right(Grader):
    async def grade(self, ctx: GraderContext):
        said = ctx.sample.messages[-1]["content"]
        ctx.set_reward(1.0 if said == f"#### {ctx.label}" else 0.0)


if __name__ == "__main__":
    backend = LocalBackend(workflow=Multiply, grader=Right)
    uvicorn.run(create_rollout_server(backend=backend), port=8000)
"""
MULTIPLY_FILES = {
    "rollouts/multiply/main.py": MULTIPLY,
    "rollouts/multiply/pyproject.toml": (
        '[project]\nname = "multiply"\nversion = "0.1.0"\nrequires-python = ">=3.10"\n'
        'dependencies = ["tinylib"]\n[tool.uv]\nno-index = true\n'
    ),
    "configs/eval/multiply.toml": (
        '[experiment]\nrollout = "multiply"\nentrypoint = "main.py"\nmodel_path = "embedded"\n'
        'dataset = "multiply"\n[evaluation]\nlimit = 4\nn = 2\n[secrets]\nrequired = []\n'
    ),
    "configs/training/multiply.toml": (
        '[experiment]\nrollout = "multiply"\nentrypoint = "main.py"\nmodel_path = "base"\n'
        'dataset = "multiply"\n'
    ),
    "datasets/multiply.jsonl": "".join(
        json.dumps({"metadata": {"left": n, "right": 7}, "ground_truth": str(n * 7)}) + "\n"
        for n in range(1, 6)
    ),
}


def test_a_workspace_has_the_same_figures_here_isolated_submitted_and_uploaded(
    osmosis: Callable[..., str],
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    wheel = write_wheel(tmp_path / "wheels", "tinylib", "1.0")
    for place, text in MULTIPLY_FILES.items():
        path = workspace / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    commit(workspace)
    git(workspace, "push", "--quiet", "origin", "main")
    config = "configs/eval/multiply.toml"
    osmosis("dataset", "upload", "datasets/multiply.jsonl")
    name = json.loads(osmosis("eval", "submit", config, "--yes", "--json"))["eval_run"]["name"]

    monkeypatch.setenv("UV_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("UV_OFFLINE", "1")
    ours = [sys.executable, "-m", "osmosis_cli", "eval"]
    every = {
        "isolated": [config, "--isolated", "-o", "isolated.json"],
        ".osmosis/evals/multiply/report": ["run", config, "--upload"],
    }
    for words in every.values():
        # The wheel is a file that Python can import from; an environment of its own has no need.
        path = {} if "--isolated" in words else {"PYTHONPATH": str(wheel)}
        done = subprocess.run(
            [*ours, *words], env={**os.environ, **path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stdout + done.stderr
    uploaded = done.stderr.partition("uploaded: ")[2].partition(",")[0]

    assert f"{name}  finished" in osmosis("eval", "info", name, "--watch")
    for run_name in (name, uploaded):
        osmosis("eval", "download", run_name, "-o", f"{run_name}.json")
    reports = {
        each: json.loads(Path(f"{each}.json").read_text()) for each in (*every, name, uploaded)
    }
    figures = {each: found["summary"]["eval_fns"] for each, found in reports.items()}
    assert figures[name]["reward"]["mean"] == figures[name]["reward"]["pass_at_2"] == 3 / 4
    assert [each for each, found in figures.items() if found != figures[name]] == []
    shown = [json.loads(osmosis("eval", "info", each, "--json")) for each in (name, uploaded)]
    same = [
        (each["metrics"]["pass_at_k"], each["metrics"]["reward_stats"], each["dataset"]["name"])
        for each in shown
    ]
    assert same[0] == same[1]
    assert [each["eval_run"]["is_local"] for each in shown] == [False, True]


@pytest.mark.fault("a run is stopped")
def test_stopping_ends_every_process_and_keeps_what_was_finished(
    osmosis: Callable[..., str], platform: PlatformServer, workspace: Path, tmp_path: Path
):
    write_wheel(tmp_path / "wheels", "tinylib", "1.0")
    rollout = workspace / "rollouts/answers"
    project = rollout / "pyproject.toml"
    project.write_text(project.read_text().replace('"httpx"', '"tinylib"'))
    main = rollout / "main.py"
    main.write_text(main.read_text().replace("import asyncio, os", "import tinylib, asyncio, os"))
    commit(workspace)
    git(workspace, "push", "--quiet", "origin", "main")
    document = json.loads(osmosis("eval", "submit", "configs/eval/answers.toml", "--yes", "--json"))
    run_id = document["eval_run"]["id"]
    until(lambda: len(starts(tmp_path)) > FIRST, lambda: log_of(platform, run_id))
    osmosis("eval", "stop", run_id, "--yes")
    osmosis("eval", "info", run_id, "--watch", status=1)
    ended = "info stop: everything of the run was ended; what was finished is kept"
    until(lambda: ended in log_of(platform, run_id), lambda: log_of(platform, run_id))
    with RunFolder.of_run(platform.settings.data, run_id).lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no process of it is left
    found = run_of(platform, run_id)
    assert found.status == "stopped"
    assert found.metrics is not None
    assert found.metrics["overview"]["passed"] == FIRST
    osmosis("eval", "download", run_id, "-o", "stopped.json")


TRAINER = """
import json, os, urllib.request

config = json.load(open(os.environ["OSMOSIS_TRAINING_CONFIG"]))
print(config["experiment_config"]["rollout"], config["training_config"], flush=True)
server = os.environ["OSMOSIS_ROLLOUT_SERVER_URL"]
print(json.load(urllib.request.urlopen(server + "/health"))["status"], flush=True)
assert os.environ["SECRET"] in os.environ["OSMOSIS_TRAINING_SECRETS"]
"""


def test_a_training_run_hands_the_served_rollout_to_the_trainer(
    osmosis: Callable[..., str],
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / "trainer.py").write_text(TRAINER)
    monkeypatch.setenv("SECRET", SECRET)
    config = workspace / "configs/training/answers.toml"
    text = config.read_text().split("[secrets]")[0].replace("# lr = ", "lr = ")
    config.write_text(f'{text}\n[secrets]\nrequired = ["SOME_KEY"]\n')
    words = ("train", "submit", str(config), "--yes", "--json")
    name = json.loads(osmosis(*words))["training_run"]["name"]
    assert f"{name}  finished" in osmosis("train", "info", name, "--watch")
    logs = osmosis("train", "logs", name)
    assert "train: answers {'lr': 1e-06}" in logs
    assert "train: ok" in logs
    assert "the trainer has ended" in logs


@contextmanager
def served(data: Path, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A platform in a process of its own; its address."""
    words = ["platform", "serve", "--port", "0", "--data", str(data), "--json", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "osmosis_cli", *words], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            process.terminate()
