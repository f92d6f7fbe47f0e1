"""Exit statuses for `git bisect run`, and a real bisection that finds the commit that broke."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.endpoints import Ask, failure_reply
from tests.support.project import Project

GATE = "--osmosis-gate=mean >= 0.75"


@pytest.fixture
def mixed(project: Project) -> Project:
    """Rows that are answered as they say: right, wrong, or not at all."""

    def answer(ask: Ask) -> str | bytes:
        if ask.row.startswith("refused"):
            return failure_reply("come back later")
        return "no" if ask.row.startswith("wrong") else ask.row

    project.endpoint.answers = answer
    return project


@pytest.mark.parametrize(
    ("rows", "options", "status"),
    [
        (["a", "b"], [], 0),
        (["a", "wrong"], [], 1),
        (["a", "raise"], [], 1),
        (["a", "refused"], [], 125),
        (["wrong", "refused"], [], 1),
        (["a", "b", "c", "wrong"], [GATE], 0),
        (["a", "b", "wrong", "wrong 2"], [GATE], 1),
        (["a", "b", "c", "wrong", "refused"], [GATE], 125),
        (["a", "refused"], ["--osmosis-gate=errors <= 0"], 125),
        (["a", "refused"], ["--osmosis-gate=scored >= 1"], 125),
        (["a", "raise", "refused"], ["--osmosis-gate=errors <= 0"], 1),
        (["a", "raise", "refused"], ["--osmosis-gate=errors <= 1"], 125),
        (["a"], ["--osmosis-agent=absent:agent"], 125),
        (["a"], ["--osmosis-gate=nonsense"], 125),
        (["a"], ["-k", "nothing-of-this"], 125),
    ],
)
def test_only_what_the_code_did_is_bad(
    mixed: Project, rows: list[str], options: list[str], status: int
):
    mixed.rows(*rows)
    agent = None if any("agent" in option for option in options) else "agent:agent_loop"
    session = mixed.run("--osmosis-bisect", *options, agent=agent)
    assert session.ret == status


def test_with_workers(mixed: Project):
    mixed.rows("a", "wrong", "refused")
    assert mixed.run("--osmosis-bisect", workers=2).ret == 1


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("def test_it(): assert False", 1),
        ("import pytest\n@pytest.fixture\ndef broken(): 1 / 0\ndef test_it(broken): pass", 1),
        ("import absent", 125),
        ("import pytest\ndef test_it(): pytest.exit('enough')", 125),
    ],
)
def test_ordinary_tests_beside_an_evaluation(mixed: Project, text: str, status: int):
    mixed.rows("a")
    mixed.write("test_other.py", text)
    assert mixed.run("--osmosis-bisect", "test_other.py", "data.jsonl").ret == status


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_bisection(mixed: Project, number: int, status: int):
    mixed.rows("a", "wrong")
    command = [sys.executable, "-m", "pytest", *mixed.options("-n0", "--osmosis-bisect")]
    mixed.endpoint.answers = lambda ask: os.kill(process.pid, number) or "late"
    process = subprocess.Popen(command, cwd=mixed.path, stdout=subprocess.DEVNULL)
    assert process.wait() == status


def test_runs_of_another_commit_are_not_used(mixed: Project):
    mixed.rows("a", "refused")
    assert mixed.run("--osmosis-bisect").ret == 125
    asked: list[str] = []
    mixed.endpoint.answers = lambda ask: asked.append(ask.row) or ask.row
    assert mixed.run("--osmosis-bisect").ret == 0
    assert asked == ["a", "refused"]


def test_git_bisect_finds_the_commit_that_made_the_agent_worse(mixed: Project):
    agent = mixed.path / "agent.py"
    good = agent.read_text()
    worse = good.replace("ctx.chat(messages", 'ctx.chat([{"role": "user", "content": "wrong"}]')
    mixed.rows("a", "b", "c")
    commits = []
    git(mixed.path, "init", "-q")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for at, text in enumerate([good, good, good, good, good, worse, worse]):
        agent.write_text(f"{text}\n# {at}\n")
        mixed.write("conftest.py", "import absent_package" if at == 3 else "")
        git(mixed.path, "add", "agent.py", "conftest.py", "rewards.py", "data.jsonl")
        git(mixed.path, *who, "commit", "-qm", f"change {at}")
        commits.append(git(mixed.path, "rev-parse", "HEAD").strip())
    git(mixed.path, "bisect", "start", commits[-1], commits[0])
    options = mixed.options("-n0", "--osmosis-bisect", "-p", "no:cacheprovider", output=None)
    command = shlex.join([sys.executable, "-B", "-m", "pytest", *options])
    command += " || { s=$?; [ $s -eq 4 ] && s=125; exit $s; }"
    out = git(mixed.path, "bisect", "run", "sh", "-c", command)
    assert f"{commits[5]} is the first bad commit" in out


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
