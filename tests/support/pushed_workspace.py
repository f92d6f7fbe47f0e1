"""A workspace whose origin looks like GitHub, and is a bare repository on this machine.

The URL of the origin has credentials, which no request, message or file may show.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

GIT_TOKEN = "ghp_not0to0be0seen0anywhere0at0all00"
ORIGIN = f"https://ada:{GIT_TOKEN}@github.com/Acme/Agents.git"
REPOSITORY = "acme/agents"
EVAL = """\
[experiment]
rollout = "my-rollout"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "my-dataset"
[secrets]
required = []
"""
TRAINING = EVAL.split("[secrets]", maxsplit=1)[0] + "[training]\nlr = 1e-6\n"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c",
}  # fmt: skip


def lead_here(folder: Path, origin: str, patch: pytest.MonkeyPatch) -> None:
    """Let git's origin lead to the bare repository of a folder, never to the network."""
    settings = folder / "user.gitconfig"
    settings.write_text(
        '[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n'
        f'[url "{folder}/bare.git"]\n\tinsteadOf = {origin}\n'
    )
    patch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name, value in _IDENTITY.items():
        patch.setenv(name, value)


def make_workspace(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Make a workspace with a config of each kind, all of it pushed; return its root."""
    lead_here(folder, ORIGIN, patch)
    root = folder / "workspace"
    for place, text in {
        "rollouts/my-rollout/main.py": "raise SystemExit('never run')\n",
        "configs/eval/one.toml": EVAL,
        "configs/training/one.toml": TRAINING,
    }.items():
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(text)
    git(folder, "init", "--quiet", "--template=", "--bare", "bare.git")
    git(root, "init", "--quiet", "--template=")
    git(root, "remote", "add", "origin", ORIGIN)
    commit(root)
    git(root, "push", "--quiet", "origin", "main")
    return root


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, and return what it prints."""
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def commit(root: Path) -> str:
    """Commit everything, and return the hash."""
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "a commit")
    return git(root, "rev-parse", "HEAD")
