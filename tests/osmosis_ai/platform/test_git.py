"""Facts about a work tree: real repositories, and a bare one on this machine as the origin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from osmosis_ai.platform.git import GitFacts, find_here, read_facts, read_repository, repository_of
from osmosis_ai.platform.git_command import GitError, ask
from osmosis_ai.platform.workspace import WorkspaceError
from tests.support.pushed_workspace import lead_here

ORIGIN = "https://github.com/Acme/Agents.git"
TOKEN = "ghp_not0to0be0seen0anywhere0at0all00"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository, and a work tree with one commit that it has; to be copied."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        lead_here(folder, ORIGIN, patch)
        git(folder, "init", "--quiet", "--template=", "--bare", "bare.git")
        git(folder, "init", "--quiet", "--template=", "tree")
        git(folder / "tree", "remote", "add", "origin", ORIGIN)
        commit(folder / "tree")
        git(folder / "tree", "push", "--quiet", "origin", "main")
    return folder


@pytest.fixture
def pushed(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree whose only commit is on the origin."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    lead_here(tmp_path, ORIGIN, monkeypatch)
    return tmp_path / "tree"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def commit(tree: Path, name: str = "file") -> str:
    (tree / name).write_text(name)
    git(tree, "add", name)
    git(tree, "commit", "--quiet", "-m", name)
    return git(tree, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Acme/My.Agents_2",
        "https://github.com/acme/my.agents_2.git",
        "https://www.github.com/acme/my.agents_2.git/",
        "HTTPS://GitHub.com/acme/my.agents_2.GIT",
        f"https://{TOKEN}@github.com/acme/my.agents_2",
        f"https://user:{TOKEN}@github.com:443/acme/my.agents_2",
        "ssh://git@github.com/acme/my.agents_2.git",
        "ssh://git@ssh.github.com:443/acme/my.agents_2.git",
        "git@github.com:acme/my.agents_2.git",
        "git@github.com:/acme/my.agents_2",
        "github.com:acme/my.agents_2.git",
    ],
)
def test_github_urls_become_owner_and_repository(url: str):
    assert repository_of(url) == "acme/my.agents_2"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/agents.git",
        "../acme/agents",
        "file:///github.com/acme/agents",
        "http://github.com/acme/agents",
        "https://gitlab.com/acme/agents.git",
        "https://github.com.evil.org/acme/agents",
        "https://evil.org/github.com/acme/agents",
        "https://github.com@evil.org/acme/agents",
        "https://github.com/acme",
        "https://github.com/acme/agents/tree/main",
        "https://github.com/acme/..",
        "https://github.com/acme/a b",
        "https://github.com/-acme/agents",
        "https://github.com/acme/agents?token=x",
        "https://[github.com/acme/agents",
        "git@evil.org:acme/agents.git",
        "ext::sh -c x% github.com:acme/agents",
        "-oProxyCommand=x@github.com:acme/agents\n",
    ],
)
def test_other_urls_are_none(url: str):
    assert repository_of(url) is None


def test_a_pushed_work_tree_differs_in_nothing(pushed: Path):
    (pushed / "deep" / "er").mkdir(parents=True)
    facts = read_facts(pushed / "deep" / "er")
    head = git(pushed, "rev-parse", "HEAD")
    assert facts == GitFacts(pushed, "acme/agents", head, "main", "main", (), 0)
    assert read_repository(pushed) == "acme/agents"


def test_changed_renamed_and_new_files_are_reported_and_ignored_ones_are_not(pushed: Path):
    (pushed / ".gitignore").write_text("*.log\n")
    (pushed / "code" / "__pycache__").mkdir(parents=True)
    (pushed / "code" / "__pycache__" / "main.pyc").write_text("")
    commit(pushed, "code/main.py")
    commit(pushed, "other")
    git(pushed, "mv", "other", "with a space")
    (pushed / "file").write_text("changed")
    (pushed / "x.log").write_text("ignored")
    facts = read_facts(pushed)
    assert set(facts.changed) == {"with a space", "file", ".gitignore"}


def test_commits_that_the_origin_lacks_are_counted(pushed: Path):
    git(pushed, "switch", "--quiet", "-c", "feature")
    commit(pushed, "one")
    commit(pushed, "two")
    facts = read_facts(pushed)
    assert (facts.branch, facts.default_branch, facts.unpushed) == ("feature", "main", 2)


def test_a_detached_head_has_no_branch(pushed: Path):
    git(pushed, "switch", "--quiet", "--detach")
    assert read_facts(pushed).branch is None


def test_before_the_first_commit_there_is_no_head(pushed: Path):
    git(pushed, "update-ref", "-d", "HEAD")
    facts = read_facts(pushed)
    assert (facts.head, facts.branch, facts.unpushed) == (None, "main", 0)


def test_the_origins_own_word_on_its_default_branch_is_taken(pushed: Path):
    git(pushed, "push", "--quiet", "origin", "main:trunk")
    assert read_facts(pushed).default_branch == "main"
    git(pushed, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert read_facts(pushed).default_branch == "trunk"


def test_the_variables_of_a_hook_do_not_lead_to_another_repository(
    pushed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "bare.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    assert read_facts(pushed).changed == ()


# ---- what git cannot tell


def refusal(start: Path) -> tuple[str, str]:
    with pytest.raises(GitError) as raised:
        read_facts(start)
    return raised.value.code, str(raised.value)


def test_a_folder_outside_of_git_is_reported_with_the_next_step(tmp_path: Path):
    with pytest.raises(WorkspaceError, match=r"is in no Git work tree; .*osmosis workspace init"):
        read_facts(tmp_path)


@pytest.mark.fault(
    "git is missing, hangs, refuses another user's repository, or finds a broken one"
)
def test_a_missing_git_is_reported(pushed: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(pushed))
    code, message = refusal(pushed)
    assert code == "git_missing"
    assert message.startswith("git is not installed or not on the PATH")


@pytest.mark.fault(
    "git is missing, hangs, refuses another user's repository, or finds a broken one"
)
def test_a_git_folder_that_is_no_repository_is_not_taken_for_the_one_around_it(pushed: Path):
    (pushed / "inner" / ".git").mkdir(parents=True)
    code, message = refusal(pushed / "inner")
    assert code == "git_broken"
    expected = f"git cannot read the repository {pushed}/inner: not a git repository"
    assert message.startswith(expected)


def test_a_work_tree_elsewhere_is_not_taken_for_this_one(pushed: Path, tmp_path: Path):
    git(pushed, "config", "core.worktree", str(tmp_path))
    code, message = refusal(pushed)
    assert (code, str(pushed / ".git") in message) == ("git_broken", True)


@pytest.mark.fault("a work tree that no platform can find: no `origin`, not on GitHub, no commit")
def test_a_missing_origin_is_reported_with_the_command_that_adds_one(pushed: Path):
    git(pushed, "remote", "remove", "origin")
    code, message = refusal(pushed)
    assert code == "git_no_origin"
    assert "git remote add origin git@github.com:OWNER/REPO.git" in message


@pytest.mark.fault("a work tree that no platform can find: no `origin`, not on GitHub, no commit")
def test_an_origin_elsewhere_is_reported_without_its_credentials(pushed: Path):
    git(pushed, "remote", "set-url", "origin", f"https://me:{TOKEN}@gitlab.com/a/b.git?key={TOKEN}")
    code, message = refusal(pushed)
    assert code == "git_not_github"
    assert message.startswith("the remote origin is https://gitlab.com/a/b.git, which is no GitHub")
    assert TOKEN not in message


def test_an_origin_that_is_written_short_is_read_as_git_expands_it(pushed: Path):
    git(pushed, "config", "url.git@github.com:.insteadOf", "gh:")
    git(pushed, "remote", "set-url", "origin", "gh:Acme/Short")
    assert read_repository(pushed) == "acme/short"


@pytest.mark.fault(
    "git is missing, hangs, refuses another user's repository, or finds a broken one"
)
def test_a_repository_of_another_user_is_reported_with_the_command_that_trusts_it(
    pushed: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    code, message = refusal(pushed)
    assert code == "git_not_trusted"
    assert f"git config --global --add safe.directory {pushed}" in message


@pytest.mark.fault(
    "git is missing, hangs, refuses another user's repository, or finds a broken one"
)
def test_a_git_that_hangs_is_ended_with_its_children(
    pushed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\nsleep 600 > {tmp_path}/alive &\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with pytest.raises(GitError, match=r"`git status` took longer than 0.3 s"):
        ask(pushed, "status", timeout_s=0.3)
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""  # once no process has it open
    os.close(alive)


@pytest.mark.fault(
    "the repository's own configuration names programs: hooks, filters, a file monitor"
)
def test_programs_in_the_repositorys_own_configuration_are_not_run(pushed: Path, tmp_path: Path):
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/sprung"\n')
    trap.chmod(0o755)
    (pushed / ".gitattributes").write_text("* filter=evil diff=evil\n")
    keys = {
        "core": "fsmonitor sshCommand gitProxy pager askPass alternateRefsCommand",
        "credential": "helper",
        'filter "evil"': "clean process",
        'diff "evil"': "command textconv",
        'remote "origin"': "uploadpack",
    }
    with (pushed / ".git" / "config").open("a") as file:
        for section, names in keys.items():
            file.write(f"[{section}]\n" + "".join(f"\t{n} = {trap}\n" for n in names.split()))
        file.write(f"[core]\n\thooksPath = {tmp_path}\n")
    (pushed / "file").write_text("fil!")  # of the same size: git must read it
    (tmp_path / "sprung").unlink(missing_ok=True)
    assert set(read_facts(pushed).changed) == {"file", ".gitattributes"}
    find_here(pushed, "0123456789")
    assert not (tmp_path / "sprung").exists()


def test_a_token_in_the_origins_url_is_in_no_fact(pushed: Path):
    git(pushed, "remote", "set-url", "origin", f"https://x:{TOKEN}@github.com/acme/other")
    facts = read_facts(pushed)
    assert facts.repository == "acme/other"
    assert TOKEN not in f"{facts}"


@pytest.mark.slow
def test_nothing_is_imported_that_is_heavy():
    code = "import osmosis_ai.platform.git, sys; print({'pydantic', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
