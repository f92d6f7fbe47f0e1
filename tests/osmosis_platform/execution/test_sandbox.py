"""A submitted evaluation in the sandbox of the documentation: what it finds, and what not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from osmosis_platform.database.connection import FILE_NAME
from osmosis_platform.database.models import Workspace
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.osmosis_platform.execution.test_end_to_end import EVALS, PATIENCE_S, served, until
from tests.support.platform_database import new_database
from tests.support.platform_server import PlatformServer, submission
from tests.support.pushed_workspace import commit, git, make_workspace
from tests.support.submitted_runs import log_of, run_of
from tests.support.tiny_wheels import write_wheel

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
INSTALLED = "--ro-bind /opt/osmosis /opt/osmosis"
PLANTED = "planted"
"""In the names of files that no run may find."""
MAIN = """
import json, os, sys
from pathlib import Path

import tinylib
from osmosis_ai.rollout import AgentWorkflow, Grader

SEEN = []


def look(what, path):
    try:
        if (os.listdir if os.path.isdir(path) else open)(path):
            SEEN.append(what)
    except OSError:
        pass


def write(what, path):
    try:
        Path(path).write_text("import evil")
        SEEN.append(what)
    except OSError:
        pass


class Asked(AgentWorkflow):
    async def run(self, ctx):
        room = next(each.parent for each in Path(__file__).parents if each.name == "source")
        data = room.parent.parent
        for name in ("DATABASE", "secret.key", "datasets", "environments/downloads"):
            look(name, data / name)
        for name in os.listdir(room.parent):
            if name != room.name:
                SEEN.append("another run: " + name)
        for name in os.listdir(data / "environments"):
            if not sys.prefix.startswith(str(data / "environments" / name)):
                SEEN.append("another environment: " + name)
        for name in ("/home", "/root/.ssh", "/run", "/etc/osmosis", "/etc/shadow", "/var/lib"):
            look(name, name)
        for name in (".ssh", ".git-credentials", ".config"):
            look(name, Path("HOME") / name)
        for parent, folders, files in os.walk("/"):
            folders[:] = [each for each in folders if each not in ("proc", "sys", "usr")]
            SEEN.extend(os.path.join(parent, each) for each in files + folders if "planted" in each)
        for name in os.listdir("/proc"):
            if name.isdigit() and b"PLATFORM_SECRET" in Path("/proc", name, "environ").read_bytes():
                SEEN.append("the environment of the platform")
        write("the environment is written", Path(tinylib.__file__).with_name("evil.pth"))
        write("the platform is written", Path(json.__file__).with_name("evil.pth"))
        for name in ("output", "output.masked", "commit", "lock", "datasets/x", "new"):
            write(name + " is written", room / name)
        for name in ("home", "tmp", "kept", "results", "source"):
            (room / name / "mine").touch()
        assert os.environ["A_KEY"] == "sk-of-the-run-0123456789"
        return [{"role": "assistant", "content": repr(SEEN)}]


class Nothing(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0 if ctx.sample.messages[-1]["content"] == "[]" else 0.0)
"""


def recipe(*shown: Path) -> str:
    """The command of the documentation, with what is where on this machine."""
    page = (ROOT / "docs/platform/isolation.md").read_text()
    found = re.search(r'--wrapper "(bwrap .*?)"$', page, re.S | re.M)
    assert found is not None
    words = found[1].replace("\\\n", " ")
    assert INSTALLED in words
    return words.replace(INSTALLED, " ".join(f"--ro-bind {each} {each}" for each in shown))


def starts(words: Sequence[str]) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.fixture
def wrapper(tmp_path: Path) -> str:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap: apt-get install bubblewrap")
    if not starts(["bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]):
        pytest.skip("this machine lets no sandbox be made")
    (tmp_path / "wheels").mkdir()
    python = {Path(each) for each in (sys.prefix, sys.base_prefix) if each != "/usr"}
    return recipe(*sorted(python), ROOT, tmp_path / "wheels")


@pytest.mark.fault("a run's code looks into the platform's data, where the platform has a sandbox")
def test_a_run_in_the_sandbox_of_the_documentation_finds_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrapper: str
):
    home, data = tmp_path / "home", tmp_path / "data"
    for planted in (
        home / ".ssh" / f"{PLANTED}-key", home / ".git-credentials", home / f"{PLANTED}-in-home",
        data / "runs" / "another" / f"{PLANTED}-secret",
        data / "environments" / "another" / f"{PLANTED}.pth",
    ):  # fmt: skip
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_text("a token\n")
    write_wheel(tmp_path / "wheels", "tinylib", "1.5")
    root = make_workspace(tmp_path, monkeypatch)
    code = MAIN.replace("DATABASE", FILE_NAME).replace("HOME", str(home))
    (root / "rollouts/my-rollout/main.py").write_text(code)
    project = '[project]\nname = "r"\nversion = "0"\ndependencies = ["tinylib"]\n'
    (root / "rollouts/my-rollout/pyproject.toml").write_text(project)
    evil = root / "rollouts/my-rollout/bin"
    evil.mkdir()
    for name in ("bwrap", "python", "uv"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/{PLANTED}-outside\n")
        (evil / name).chmod(0o755)
    commit(root)
    git(root, "push", "--quiet", "origin", "main")
    database = new_database(data)
    platform = PlatformServer("", database, Settings(data=data), open_vault(data, None))
    rows = b'{"system_prompt": "s", "user_prompt": "u", "ground_truth": "g"}\n'
    files = DatasetFiles(data, platform.add_dataset("my-dataset", row_count=1), "jsonl")
    files.make()
    files.rows.write_bytes(rows)
    platform.add_secret("A_KEY", value="sk-of-the-run-0123456789")
    with database.writing() as session:
        workspace = session.get_one(Workspace, platform.account.workspace_id)
        workspace.clone_url = str(tmp_path / "bare.git")
    asked = submission(evaluation_config={"limit": 1})
    asked["experiment_config"]["model_path"] = "embedded"
    asked["secrets"] = {"required": ["A_KEY"]}
    asked["env_config"] = {
        "PATH": "rollouts/my-rollout/bin:/usr/bin", "BASH_ENV": "rollouts/my-rollout/bin/uv",
        "LD_LIBRARY_PATH": "rollouts/my-rollout/bin",
    }  # fmt: skip
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PLATFORM_SECRET", "x")
    options = ("--wrapper", wrapper, "--find-links", str(tmp_path / "wheels"), "--no-index")
    with served(data, *options) as (url, _):
        headers = platform.account.headers
        answer = httpx.post(f"{url}{EVALS}", json=asked, headers=headers, timeout=PATIENCE_S)
        run_id = answer.json()["id"]
        until(
            lambda: run_of(platform, run_id).status not in ("pending", "running"),
            lambda: log_of(platform, run_id),
        )
    found = run_of(platform, run_id)
    assert found.status == "finished", log_of(platform, run_id)
    assert "the environment is built" in "\n".join(log_of(platform, run_id))
    assert found.report["rows"][0]["runs"][0].get("error") is None, json.dumps(found.report)
    said = (data / "runs" / run_id / "conversations.jsonl").read_text()
    assert found.metrics["reward_stats"]["mean"] == 1.0, said
    assert not (tmp_path / f"{PLANTED}-outside").exists()
    database.close()
