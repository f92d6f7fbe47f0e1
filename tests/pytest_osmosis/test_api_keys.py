"""What a report tells of where a session ran, and what it keeps to itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from osmosis_ai.secret import Secret, mask_everywhere
from pytest_osmosis.session.environment import command_line, describe, git_state
from tests.support.project import Project


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
    done = subprocess.run(
        ["git", *named, "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "tidy")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_it_names_the_commit_the_branch_and_whether_files_were_changed_since(repository: Path):
    commit = git(repository, "rev-parse", "HEAD")
    assert git_state(repository) == {"commit": commit, "branch": "tidy", "dirty": False}
    (repository / "new").write_text("not tracked")
    git(repository, "checkout", "-q", "--detach")
    assert git_state(repository) == {"commit": commit, "branch": None, "dirty": False}
    (repository / "file").write_text("two")
    assert git_state(repository) == {"commit": commit, "branch": None, "dirty": True}


def test_outside_of_git_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path) is None


def test_a_repository_cannot_have_its_own_programs_run(repository: Path):
    hook = repository / "hook.sh"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    assert git_state(repository) is not None
    assert not (repository / "ran").exists()


def test_a_command_line_can_be_typed_again_but_for_its_secrets():
    mask_everywhere(Secret("sk-elsewhere-1234"))
    arguments = [
        "--osmosis-api-key=sk-1", "--osmosis-api-key", "sk-2", "-o", "osmosis_api_key=sk-3",
        "--osmosis-base-url=http://me:sk-4@host/v1", "--token", "sk-5", "--password=sk-6",
        "--osmosis-api-key-env=NAME", "--osmosis-max-tokens=5", "-k", "a and b",
        "sk-elsewhere-1234", "--osmosis-header=X-Team=evals", "--osmosis-header", "Api-Key=$MINE",
        "--osmosis-base-url=http://host/v1?api-version=2024-06-01&code=sk-7",
    ]  # fmt: skip
    assert command_line(arguments) == (
        "pytest '--osmosis-api-key=***' --osmosis-api-key '***' -o 'osmosis_api_key=***' "
        "'--osmosis-base-url=http://***@host/v1' --token '***' '--password=***' "
        "--osmosis-api-key-env=NAME --osmosis-max-tokens=5 -k 'a and b' *** "
        "'--osmosis-header=X-Team=***' --osmosis-header 'Api-Key=$MINE' "
        "'--osmosis-base-url=http://host/v1?api-version=2024-06-01&code=***'"
    )


def test_versions_and_platform_are_reported(tmp_path: Path):
    found = describe([], folder=tmp_path)
    assert {"python", "pytest", "pytest-osmosis"} <= set(found["versions"])
    assert found["platform"]
    assert found["command_line"] == "pytest"


def test_the_json_report_has_it(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", "sk-12345678-secret")
    project.rows("one")
    session = project.run("--osmosis-api-key-env=MY_KEY", "-k", "sk-12345678-secret or row-0")
    environment = session.report["environment"]
    assert environment["versions"]["pytest-osmosis"]
    assert "--osmosis-data=data.jsonl" in environment["command_line"]
    assert "12345678" not in str(environment)
