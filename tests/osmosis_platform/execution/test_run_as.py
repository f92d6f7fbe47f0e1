"""A submitted evaluation whose programs run as another user: `serve --run-as`."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from osmosis_executors.job import RunAs
from osmosis_platform.commands.confinement_options import can_run
from osmosis_platform.database.connection import FILE_NAME, Database
from osmosis_platform.database.models import Workspace
from osmosis_platform.database.schema import upgrade
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.osmosis_platform.execution.test_end_to_end import EVALS, PATIENCE_S, served, until
from tests.support.platform_server import PlatformServer, submission
from tests.support.pushed_workspace import commit, git, make_workspace
from tests.support.submitted_runs import log_of, run_of
from tests.support.tiny_wheels import write_wheel

pytestmark = pytest.mark.slow
NOBODY = pwd.getpwnam("nobody")
MAIN = """
import os
from pathlib import Path

import tinylib
from osmosis_ai.rollout import AgentWorkflow, Grader

HERE = Path(__file__).absolute()


class Asked(AgentWorkflow):
    async def run(self, ctx):
        return [{"role": "assistant", "content": str(os.getuid())}]


class IsApart(Grader):
    async def grade(self, ctx):
        closed = 0
        downloads = "environments/downloads/WORKSPACE"
        for name in ("DATABASE", "secret.key", "datasets", "runs", downloads):
            path = next(each for each in HERE.parents if each.name == "runs").parent / name
            try:
                (os.listdir if path.is_dir() else open)(path)
            except PermissionError:
                closed += 1
        library = Path(tinylib.__file__)
        for path in (library, library.with_name("evil.pth"), library.parent / "x" / "__init__.py"):
            try:
                path.parent.chmod(0o755)
                path.write_text("import evil")
            except (PermissionError, FileNotFoundError):
                closed += 1
        ctx.set_reward(closed if ctx.sample.messages[-1]["content"] == "UID" else -1)
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder for the data in one that every user can enter."""
    if os.geteuid() != 0:
        pytest.skip("only root can run programs as another user")
    user = RunAs(NOBODY.pw_name, NOBODY.pw_uid, NOBODY.pw_gid)
    if not can_run(user, [sys.executable, "-c", "import pytest_osmosis"]):
        pytest.skip(f"{user.name} cannot read the Python that runs the tests")
    above = Path(tempfile.mkdtemp(prefix="platform-", dir="/tmp"))
    above.chmod(0o711)
    yield above / "data"
    shutil.rmtree(above)


@pytest.mark.fault("a run's code looks into the platform's data, where the platform has `--run-as`")
def test_code_of_users_runs_as_another_user_who_cannot_read_the_platforms_data(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = make_workspace(tmp_path, monkeypatch)
    database = Database.in_folder(data)
    upgrade(database)
    platform = PlatformServer("", database, Settings(data=data), open_vault(data, None))
    code = MAIN.replace("DATABASE", FILE_NAME).replace("UID", str(NOBODY.pw_uid))
    code = code.replace("WORKSPACE", platform.account.workspace_id)
    (root / "rollouts/my-rollout/main.py").write_text(code)
    project = '[project]\nname = "r"\nversion = "0"\ndependencies = ["tinylib"]\n'
    (root / "rollouts/my-rollout/pyproject.toml").write_text(project)
    commit(root)
    git(root, "push", "--quiet", "origin", "main")
    wheels = data.parent / "wheels"
    write_wheel(wheels, "tinylib", "1.5")
    rows = b'{"system_prompt": "s", "user_prompt": "u", "ground_truth": "g"}\n'
    files = DatasetFiles(data, platform.add_dataset("my-dataset", row_count=1), "jsonl")
    files.make()
    files.rows.write_bytes(rows)
    with database.writing() as session:
        home = session.get_one(Workspace, platform.account.workspace_id)
        home.clone_url = str(tmp_path / "bare.git")
    asked = submission(evaluation_config={"limit": 1})
    asked["experiment_config"]["model_path"] = "embedded"
    found_in = ("--find-links", str(wheels), "--no-index")
    with served(data, "--run-as", NOBODY.pw_name, *found_in) as (url, _):
        headers = platform.account.headers
        answer = httpx.post(f"{url}{EVALS}", json=asked, headers=headers, timeout=PATIENCE_S)
        run_id = answer.json()["id"]
        until(
            lambda: run_of(platform, run_id).status not in ("pending", "running"),
            lambda: log_of(platform, run_id),
        )
    found = run_of(platform, run_id)
    assert found.status == "finished", log_of(platform, run_id)
    assert found.metrics is not None
    assert found.metrics["reward_stats"]["mean"] == 8.0
    database.close()
