"""Runs the git executable so that a repository's own configuration starts no program.

No prompt, no hook, no pager, no lock, no file system monitor, a time limit, and no network. Knows
no fact about repositories: `git.py` asks for those.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..escaping import printable
from .workspace import WorkspaceError

LOCAL_TIMEOUT_S = 30.0
_SAFE = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.pager=cat",
)
_ASIDE = re.compile(r"warning:|hint:", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=//)[^/\s]*@")
_QUERY = re.compile(r"(?<=\S)\?[^\s'\"]+")
_DROPPED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "SSH_ASKPASS",
)
"""Variables that a hook's environment has, and that would point git to another repository."""


class GitError(WorkspaceError):
    """What git cannot tell, in a sentence."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What git said."""

    status: int
    out: str
    complaint: str
    """The line of its stderr that says what went wrong, printable."""


def ask(
    folder: Path,
    *words: str,
    settings: Sequence[tuple[str, str]] = (),
    timeout_s: float = LOCAL_TIMEOUT_S,
    looks_up: bool = False,
) -> GitOutput:
    """Run git in a folder and return its answer, whatever its status.

    Unless it `looks_up`, the folder is the top of a work tree, or in none.
    `settings` are configuration; they travel in the environment, as they may hold a credential.

    Raise GitError where there is no git, or it takes longer than the limit.
    """
    variables = environment(settings, "")
    if not looks_up:
        variables["GIT_CEILING_DIRECTORIES"] = str(folder.resolve().parent)
    try:
        process = subprocess.Popen(
            command(*words),
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # no terminal to prompt on, and a group to end
        )
    except FileNotFoundError:
        raise GitError(
            "git is not installed or not on the PATH; install it: a workspace is a Git work tree",
            "git_missing",
        ) from None
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}", "git_missing") from None
    with process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise GitError(
                f"`git {words[0]}` took longer than {timeout_s:g} s", "git_slow"
            ) from None
        finally:
            _end_group(process)
    text = out.decode("utf-8", "surrogateescape")
    return GitOutput(process.returncode, text, complaint(err.decode("utf-8", "replace")))


def command(*words: str) -> list[str]:
    """Return the program and its arguments for a command of git."""
    return ["git", *_SAFE, *words]


def complaint(text: str) -> str:
    """Return the first line that is no warning and no hint, without credentials of URLs."""
    lines = (line for line in text.splitlines() if line and not _ASIDE.match(line))
    return printable(without_credentials(next(lines, "").removeprefix("fatal: ")))


def without_credentials(text: str) -> str:
    """Return text without what URLs in it say of a user, and without their queries."""
    return _QUERY.sub("", _USERINFO.sub("", text))


def environment(settings: Sequence[tuple[str, str]], protocols: str) -> dict[str, str]:
    """Return the variables of a command of git with these settings.

    `protocols` are those that it may open connections with, as `https:ssh`.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and not name.startswith("GIT_TRACE")
    }
    # What is there already is the user's: a safe.directory, or credentials in CI.
    given = kept.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    for number, (key, value) in enumerate(settings, start=first):
        kept |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if settings:
        kept["GIT_CONFIG_COUNT"] = str(first + len(settings))
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_ASKPASS": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "SSH_ASKPASS_REQUIRE": "never",
    }


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End git and the programs that it started, where it has not ended by itself."""
    if process.poll() is None:
        # It may end meanwhile; on macOS a group of zombies may not be signalled.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
