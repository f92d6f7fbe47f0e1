"""`osmosis platform try`: what it makes the first time, and finds again the next time."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from osmosis_platform.accounts.passwords import matches
from osmosis_platform.accounts.tokens import find_caller
from osmosis_platform.database.connection import Database
from osmosis_platform.database.models import Member, User, Workspace
from tests.support.command import Osmosis
from tests.support.pushed_workspace import GIT_TOKEN, commit, git, make_workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, from a folder of which the command is run."""
    root = make_workspace(tmp_path, monkeypatch)
    monkeypatch.chdir(root / "configs")
    return root


class Trial:
    """`osmosis platform try` that ends once the command was to be logged in."""

    def __init__(self, platform: Osmosis, data: Path) -> None:
        self.platform = platform
        self.data = data
        self.tokens: list[str] = []
        self.problem = ""

    def log_in(self, url: str, token: str) -> str:
        self.tokens.append(token)
        return self.problem

    def serve(self, app: object, bound: object) -> None:
        for thread in threading.enumerate():
            if thread.name == "osmosis-login":
                thread.join()

    def __call__(self, *words: str) -> str:
        status, out, err = self.platform("try", "--port", "0", "--data", str(self.data), *words)
        assert (status, err) == (0, "")
        secrets = (self.tokens[-1], (self.data / "password").read_text().strip(), GIT_TOKEN)
        assert [secret for secret in secrets if secret in out] == []
        return out

    @contextmanager
    def database(self) -> Iterator[Any]:
        database = Database.in_folder(self.data)
        with database.reading() as session:
            yield session
        database.close()


@pytest.fixture
def trial(platform: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    trial = Trial(platform, tmp_path / "try")
    monkeypatch.setattr("osmosis_platform.commands.serve._serve", trial.serve)
    monkeypatch.setattr("osmosis_platform.commands.trial._log_in", trial.log_in)
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATABASE", "postgresql://not-this-one@x/y")
    return trial


def test_a_user_a_workspace_and_a_token_are_made_and_found_again_and_it_says_what_to_do_next(
    trial: Trial, workspace: Path
):
    facts = json.loads(trial("--json"))
    password_file = trial.data / "password"
    assert facts == {
        "url": facts["url"], "data": str(trial.data), "user": "me", "workspace": "acme-agents",
        "repository": "acme/agents", "clone_folder": str(workspace), "logged_in": True,
        "password_file": str(password_file),
    }  # fmt: skip
    assert facts["url"].startswith("http://127.0.0.1:")
    assert stat.S_IMODE(password_file.stat().st_mode) == 0o600
    password = password_file.read_text().strip()
    again = json.loads(trial("--json"))
    assert {**again, "url": ""} == {**facts, "url": ""}
    assert password_file.read_text().strip() == password
    out = trial()
    lines = [line.strip() for line in out.splitlines()]
    assert f"me owns its workspace acme-agents, which is cloned from {workspace}: what is" in out
    assert f"cat {password_file}" in out
    assert lines[-1] == "osmosis eval submit configs/eval/NAME.toml"
    trial.problem = "the credentials cannot be kept"
    assert "osmosis login                         # the credentials cannot be kept" in trial()
    with trial.database() as session:
        (user,) = session.scalars(select(User))
        assert matches(password, user.password_hash)
        (member,) = session.scalars(select(Member))
        assert member.role == "owner"
        *replaced, second = (find_caller(session, token) for token in trial.tokens)
        assert replaced == [None] * 3  # each by the next one
        assert (second.user_name, second.workspace.name) == ("me", "acme-agents")


def test_another_folder_and_another_repository_are_served_too(
    trial: Trial, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trial()
    git(tmp_path, "clone", "--quiet", str(workspace), "second")
    monkeypatch.chdir(tmp_path / "second")
    for name in ("Acme/Agents", "b/agents"):
        git(tmp_path / "second", "remote", "set-url", "origin", f"git@github.com:{name}")
        assert json.loads(trial("--json"))["workspace"] == name.lower().replace("/", "-")
    with trial.database() as session:
        found = {each.name: each.clone_url for each in session.scalars(select(Workspace))}
    assert found == dict.fromkeys(("acme-agents", "b-agents"), str(tmp_path / "second"))


def test_what_is_missing_is_one_sentence(
    platform: Osmosis, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git(workspace, "remote", "remove", "origin")
    err = platform.error("try")
    assert "git remote add origin git@github.com:OWNER/REPO.git` (nothing has to be there)" in err
    monkeypatch.chdir(tmp_path)
    status, out, err = platform("try")
    assert (status, out, "is in no Git work tree" in err) == (1, "", True)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """End a process where the test fails."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.slow
def test_an_evaluation_is_submitted_from_a_folder_without_anything_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    make_workspace(tmp_path, monkeypatch)
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "--quiet")
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path / "config"))

    def osmosis(*words: str) -> str:
        assert run(cli, words) == 0, capsys.readouterr()
        return capsys.readouterr().out

    osmosis("workspace", "init")
    osmosis("rollout", "init", "adder", "--model", "embedded", "--limit", "3")
    git(root, "remote", "add", "origin", "git@github.com:acme/never-pushed.git")
    commit(root)
    words = [sys.executable, "-m", "osmosis_cli", "platform", "try", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as served, ended(served):
        assert served.stdout is not None
        facts = json.loads(served.stdout.readline())
        assert facts["data"] == str(tmp_path / "home/osmosis/try")
        monkeypatch.setenv("OSMOSIS_PLATFORM_URL", facts["url"])
        osmosis("dataset", "upload", "datasets/adder.jsonl")
        submitted = json.loads(
            osmosis("eval", "submit", "configs/eval/adder.toml", "--yes", "--json")
        )
        name = submitted["eval_run"]["name"]
        assert submitted["findings"] == []
        assert f"{name}  finished" in osmosis("eval", "info", name, "--watch")
        served.send_signal(signal.SIGINT)
        assert served.wait() == 130
