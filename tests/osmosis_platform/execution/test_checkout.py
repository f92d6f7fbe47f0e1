"""The files of a commit: which one, from where, and what a repository cannot do."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_executors.job import Job, Running
from osmosis_executors.local import LocalExecutor
from osmosis_platform.execution.checkout import (
    CheckoutError,
    CheckoutLimits,
    CloneSource,
    WorkTree,
    check_out,
)
from osmosis_platform.execution.git_program import GitProgram
from osmosis_platform.execution.writing import NotToGoOn
from tests.support.pushed_workspace import commit, git

LIMITS = CheckoutLimits(time_s=60)


class Program:
    """A program of git without a supervisor, as a test needs no end to it."""

    def __init__(self, job: Job) -> None:
        assert job.errors is not None
        with job.output.open("wb") as output, job.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                job.words, cwd=job.folder, env=dict(job.environment), stdout=output, stderr=errors
            )

    def wait(self, timeout_s: float) -> int | None:
        return self._process.wait()

    def stop(self) -> None:
        self._process.wait()


class Recorder:
    """An executor that keeps what it was asked to run."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def start(self, job: Job) -> Running:
        self.jobs.append(job)
        return Program(job)

    def words_of(self, name: str) -> list[str]:
        """The words of the one command of a name, from its name on."""
        (found,) = (job.words for job in self.jobs if name in job.words)
        return [*found[found.index(name) :]]


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits of different files."""
    settings = tmp_path / "user.gitconfig"
    settings.write_text("[user]\n\tname = a\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "origin"
    root.mkdir()
    git(root, "init", "--quiet", "--template=")
    (root / "first.txt").write_text("first")
    commit(root)
    (root / "second.txt").write_text("second")
    commit(root)
    return root


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def program(tmp_path: Path, recorder: Recorder) -> GitProgram:
    room = tmp_path / "room"
    room.mkdir()
    return GitProgram(recorder, room, LIMITS.time_s, LIMITS.download_bytes, lambda: None)


def of(origin: Path) -> CloneSource:
    return CloneSource.of_workspace("acme/agents", str(origin))


def files(tree: WorkTree) -> list[str]:
    return sorted(path.name for path in tree.folder.iterdir() if path.name != ".git")


def test_the_newest_commit_of_the_default_branch_is_fetched_alone(
    program: GitProgram, recorder: Recorder, origin: Path
):
    tree = check_out(program, of(origin), None, LIMITS)
    assert files(tree) == ["first.txt", "second.txt"]
    assert tree.commit == git(origin, "rev-parse", "HEAD")
    assert git(tree.folder, "rev-list", "--count", "HEAD") == "1"
    fetch = recorder.words_of("fetch")
    assert fetch[-3:] == ["--", f"file://{origin}", "HEAD"]
    for job in recorder.jobs:
        variables = job.environment
        assert variables["GIT_TERMINAL_PROMPT"] == "0"
        allowed = "file" if "fetch" in job.words else ""
        assert variables["GIT_ALLOW_PROTOCOL"] == allowed
        assert f"core.hooksPath={os.devnull}" in job.words


def test_the_newest_commit_of_a_branch_is_fetched_unless_a_commit_is_named(
    program: GitProgram, origin: Path
):
    first = git(origin, "rev-parse", "HEAD~1")
    for name in (first, first.upper(), first[:7]):
        tree = check_out(program, of(origin), name, LIMITS)
        assert (tree.commit, files(tree)) == (first, ["first.txt"])
    git(origin, "branch", "older/one", first)
    tree = check_out(program, of(origin), None, LIMITS, branch="older/one")
    assert (tree.commit, files(tree)) == (first, ["first.txt"])
    newest = git(origin, "rev-parse", "HEAD")
    assert check_out(program, of(origin), newest, LIMITS, branch="older/one").commit == newest
    with pytest.raises(CheckoutError, match="the repository has no branch other; push it"):
        check_out(program, of(origin), None, LIMITS, branch="other")


@pytest.mark.fault("the commit is not there, or its first digits are those of several")
def test_a_commit_that_is_not_there_or_is_not_one_alone_is_refused(
    program: GitProgram, origin: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("0123456", "0123456789" * 4):
        with pytest.raises(CheckoutError, match=rf"no commit .*{name}; push it"):
            check_out(program, of(origin), name, LIMITS)
    names = ["abcdef" + "0" * 34, "abcdef" + "1" * 34]
    monkeypatch.setattr(GitProgram, "run", lambda self, *words, **more: "\n".join(names))
    with pytest.raises(CheckoutError, match=r"2 commits .* begin with abcdef; write more digits"):
        check_out(program, of(origin), "abcdef", LIMITS)


@pytest.mark.fault(
    "the repository has symlinks, submodules, filters or hooks, or is huge; its URL would start "
    "a program"
)
def test_nothing_of_a_repository_leads_out_of_it_or_starts_a_program(
    program: GitProgram, origin: Path, tmp_path: Path
):
    ran = tmp_path / "ran"
    (origin / "leads-out").symlink_to("/etc/passwd")
    (origin / ".gitattributes").write_text("* filter=lfs\n")
    (origin / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = x\n\turl = {origin}\n')
    head = git(origin, "rev-parse", "HEAD")
    git(origin, "add", ".")
    git(origin, "update-index", "--add", "--cacheinfo", f"160000,{head},x")
    git(origin, "commit", "--quiet", "-m", "a commit")
    for settings in ("user.gitconfig", "origin/.git/config"):
        with (tmp_path / settings).open("a") as file:
            file.write(f'[filter "lfs"]\n\tsmudge = touch {ran}; cat\n\trequired = true\n')
    tree = check_out(program, of(origin), None, LIMITS)
    assert (tree.folder / "leads-out").read_text() == "/etc/passwd"
    assert not (tree.folder / "leads-out").is_symlink()
    assert (tree.submodules, tree.symlinks) == (("x",), ("leads-out",))
    assert [*(tree.folder / "x").iterdir()] == []
    assert (tree.folder / "first.txt").read_text() == "first"
    assert not (tree.folder / ".git" / "hooks").exists()
    assert not ran.exists()


@pytest.mark.fault(
    "the repository has symlinks, submodules, filters or hooks, or is huge; its URL would start "
    "a program"
)
def test_a_repository_that_is_too_large_is_refused_before_its_files_are_written(
    program: GitProgram, origin: Path
):
    (origin / "large.bin").write_bytes(os.urandom(300_000))
    commit(origin)
    for limits, message in (
        (replace(LIMITS, files=2), "has 3 files; the limit is 2"),
        (replace(LIMITS, total_bytes=200_000), "the limit is 0 MiB"),
    ):
        with pytest.raises(CheckoutError, match=message):
            check_out(program, of(origin), None, limits)
        assert not (program.room / "source" / "first.txt").exists()
    with pytest.raises(CheckoutError, match="wrote more than 100,000 bytes"):
        check_out(
            replace(program, executor=LocalExecutor(), file_bytes=100_000),
            of(origin),
            None,
            LIMITS,
        )


def test_git_is_ended_when_it_takes_too_long_and_when_the_run_is_stopped(
    program: GitProgram, origin: Path
):
    class Slow:
        stops = 0

        def start(self, job: Job) -> Slow:
            return self

        def wait(self, timeout_s: float) -> None:
            return None

        def stop(self) -> None:
            self.stops += 1

    slow = Slow()
    times = iter([0.0, 30.0, 61.0])
    with pytest.raises(CheckoutError, match="`git init` took longer than 60 s"):
        check_out(
            replace(program, executor=slow, clock=lambda: next(times)), of(origin), None, LIMITS
        )

    def check() -> None:
        raise NotToGoOn("stopped")

    with pytest.raises(NotToGoOn):
        check_out(replace(program, executor=slow, check=check), of(origin), None, LIMITS)
    assert slow.stops == 2


@pytest.mark.fault(
    "the repository has symlinks, submodules, filters or hooks, or is huge; its URL would start "
    "a program"
)
def test_only_https_ssh_and_a_folder_of_the_operator_are_cloned_from(
    program: GitProgram, tmp_path: Path
):
    assert CloneSource.of_workspace("a/b", None) == CloneSource(
        "https://github.com/a/b.git", "https"
    )
    assert CloneSource.of_workspace("a/b", "git@x.test:a/b.git").protocol == "ssh"
    for url in ("ext::sh -c x", "-oProxyCommand=x", "http://x.test/a", "ssh://-x/a", "/no/folder"):
        with pytest.raises(CheckoutError, match="the workspace's clone URL"):
            CloneSource.of_workspace("a/b", url)
    ran = tmp_path / "ran"
    for url in (f"ext::touch {ran}", f"--upload-pack=touch {ran}"):
        with pytest.raises(CheckoutError):
            check_out(program, CloneSource(url, "https"), None, LIMITS)
    with pytest.raises(CheckoutError, match="transport 'file' not allowed"):
        check_out(program, CloneSource(tmp_path.as_uri(), "https"), None, LIMITS)
    assert not ran.exists()
