"""Several platforms over one database and one data folder, each in a process of its own.

The rollout of their runs asks an endpoint of the test for each row, which counts what is paid.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import URL

from osmosis_platform.database.models import Workspace
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.support.endpoints import Ask, Endpoint, completion, reply
from tests.support.platform_database import new_database
from tests.support.platform_server import PlatformServer, submission
from tests.support.pushed_workspace import commit, git, make_workspace
from tests.support.submitted_runs import log_of, run_of

PATIENCE_S = 150.0
SECRET = "sk-of-the-fleet-0123456789"
"""The value of a secret that every run has in its environment."""
MAIN = """\
import asyncio, json, os, time, urllib.request
from pathlib import Path

from osmosis_ai.rollout import AgentWorkflow, Grader


def kill_platform():
    folder = Path("/proc", str(os.getppid()))
    try:
        while b"platform\\0serve\\0" not in (folder / "cmdline").read_bytes():
            folder = Path("/proc", (folder / "stat").read_text().rpartition(")")[2].split()[1])
        os.kill(int(folder.name), 9)
    except OSError:  # it has died, and this process is about to
        time.sleep(60)


def ask(prompt):
    body = {"model": os.environ["RUN"], "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(
        os.environ["ENDPOINT"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


class Asks(AgentWorkflow):
    async def run(self, ctx):
        if os.environ["RUN"] == "deadly":
            kill_platform()
        text = await asyncio.to_thread(ask, ctx.prompt[-1]["content"])
        known = {"role": "assistant", "content": "the key is " + os.environ["FLEET_KEY"]}
        asked = {"role": "user", "content": "and the answer?"}
        return [*ctx.prompt, known, asked, {"role": "assistant", "content": text}]


class IsRight(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0 if ctx.sample.messages[-1]["content"] == ctx.label else 0.0)
"""


def until(is_so: Callable[[], bool], describe: Callable[[], object] = str) -> None:
    """Return once it is so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, describe()
        time.sleep(0.05)


@dataclass
class Fleet:
    """A platform's data, the processes that serve it, and what its runs have paid for."""

    platform: PlatformServer
    endpoint: Endpoint
    dataset_id: str
    rows: int
    url: str | None
    """Of the database, where that is PostgreSQL."""
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    is_open: bool = True
    """Whether the endpoint answers more than the first row of each run."""

    def serve(self, max_runs: int) -> subprocess.Popen[str]:
        """Start another process; it takes runs from now on."""
        place = ["--data", str(self.platform.settings.data)]
        place += [] if self.url is None else ["--database", self.url]
        words = ["platform", "serve", "--port", "0", "--json", "--no-build", *place]
        words += ["--max-runs", str(max_runs), "--log-level", "info", "--log-format", "json"]
        with self.log_file.open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "osmosis_cli", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.processes.append(process)
        assert process.stdout is not None
        assert "url" in json.loads(process.stdout.readline())
        return process

    @property
    def log_file(self) -> Path:
        """What all these processes log."""
        return self.platform.settings.data.parent / "log"

    def submit(self, name: str, *, batch_size: int = 1) -> str:
        """Submit a run whose payments are counted under a name; return its id."""
        wanted = submission(
            evaluation_config={"limit": self.rows, "batch_size": batch_size},
            env_config={"RUN": name, "ENDPOINT": self.endpoint.base_url},
            secrets={"required": ["FLEET_KEY"]},
        )
        wanted["experiment_config"]["model_path"] = "embedded"
        return self.platform.add_run(name=name, submission=wanted, dataset_id=self.dataset_id)

    def status(self, run_id: str) -> str:
        return run_of(self.platform, run_id).status

    def log(self, run_id: str) -> list[str]:
        return log_of(self.platform, run_id)

    def until_ended(self, run_ids: list[str]) -> None:
        """Return once all have ended."""
        ended = {"finished", "failed", "stopped"}
        until(
            lambda: all(self.status(run_id) in ended for run_id in run_ids),
            lambda: [(self.status(run_id), self.log(run_id)) for run_id in run_ids],
        )

    def paid(self, name: str) -> list[int]:
        """How often each row of a run was paid for."""
        return [self.endpoint.attempts[name, f"row {row}"] for row in range(self.rows)]

    def answer(self, ask: Ask) -> Iterator[float | bytes]:
        """What the endpoint sends: all but the first rows wait until it is open."""
        while not (self.is_open or ask.row == "row 0"):
            yield 0.02
        yield reply(200, completion("yes", model=ask.model))


def _without_password(url: URL) -> str:
    return f"postgresql://{url.username}@/{url.database}?{urlencode(dict(url.query))}"


@contextmanager
def fleet(folder: Path, patch: pytest.MonkeyPatch, *, rows: int = 3) -> Iterator[Fleet]:
    """Make the data of a platform, with a workspace, a dataset and an endpoint."""
    root = make_workspace(folder, patch)
    (root / "rollouts/my-rollout/main.py").write_text(MAIN)
    commit(root)
    git(root, "push", "--quiet", "origin", "main")
    data = folder / "data"
    database = new_database(data)
    platform = PlatformServer("", database, Settings(data=data), open_vault(data, None))
    lines = [
        {"system_prompt": "", "user_prompt": f"row {row}", "ground_truth": "yes"}
        for row in range(rows)
    ]
    platform.add_secret("FLEET_KEY", value=SECRET)
    dataset_id = platform.add_dataset(row_count=rows)
    files = DatasetFiles(data, dataset_id, "jsonl")
    files.make()
    files.rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with platform.database.writing() as session:
        workspace = session.get_one(Workspace, platform.account.workspace_id)
        workspace.clone_url = str(folder / "bare.git")
    url = None if database.is_sqlite else _without_password(database.engine.url)
    with Endpoint() as endpoint:
        found = Fleet(platform, endpoint, dataset_id, rows, url)
        endpoint.answers = found.answer
        try:
            yield found
        finally:
            for process in found.processes:
                process.terminate()
            for process in found.processes:
                process.wait(PATIENCE_S)
                assert process.stdout is not None
                process.stdout.close()
            database.close()
