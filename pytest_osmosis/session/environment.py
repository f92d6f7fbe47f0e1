"""Where a session ran: versions, platform, git commit, and the command line without keys.

Asks git by its executable, with nothing of the repository's configuration that could run a program.
Knows neither pytest nor what a report makes of it.
"""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from osmosis_ai.platform.git_command import GitError, ask
from osmosis_ai.secret import redact

PACKAGES = ("pytest-osmosis", "pytest", "pytest-xdist", "litellm", "aiohttp")
"""Distributions whose versions are reported."""
GIT_TIMEOUT_S = 2.0
_SENSITIVE = re.compile(
    r"(?:key|token|secrets?|passwords?|passwd|credentials?|auth)$", re.IGNORECASE
)
_NAMED = re.compile(r"(?P<option>-{0,2}[\w.-]+)=(?P<value>.*)", re.DOTALL)
_HEADER = "--osmosis-header="
_QUERY = re.compile(r"(?<=[?&])((?![\w.-]*version=)[\w.-]+=)[^&\s]+(?=\S*$)")
"""A value in a URL's query, but that of a version."""
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")
MASK = "***"


def describe(arguments: Iterable[str], *, folder: Path) -> dict[str, Any]:
    """Return what reports say of the environment, as plain JSON values."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": f"{platform.system()}-{platform.release()}-{platform.machine()}",
        "git": git_state(folder),
        "command_line": command_line(arguments),
    }


def command_line(arguments: Iterable[str], *, program: str = "pytest") -> str:
    """Return the command as it could be typed again, with possible secrets masked."""
    shown: list[str] = []
    hide_next = of_header = False
    for argument in arguments:
        if of_header:
            shown.append(_masked(f"{_HEADER}{argument}").removeprefix(_HEADER))
        else:
            shown.append(MASK if hide_next else _masked(argument))
        hide_next = not hide_next and argument.startswith("-") and _names_secret(argument)
        of_header = argument == _HEADER[:-1]
    return redact(f"{program} {shlex.join(shown)}".rstrip())


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return `commit`, `branch`, and `dirty`: tracked files have changed; None outside of git."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules")
    branch = _git(folder, "branch", "--show-current") or None
    dirty = None if changed is None else bool(changed)
    return {"commit": commit, "branch": branch, "dirty": dirty}


def _versions() -> Mapping[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _masked(argument: str) -> str:
    named = _NAMED.fullmatch(argument.removeprefix(_HEADER))
    if named is not None and (argument.startswith(_HEADER) or _names_secret(named["option"])):
        shown = named["value"] if named["value"].startswith("$") else MASK
        return f"{_HEADER * argument.startswith(_HEADER)}{named['option']}={shown}"
    argument = _USERINFO.sub(f"{MASK}@", argument)
    return _QUERY.sub(rf"\1{MASK}", argument) if "://" in argument else argument


def _names_secret(option: str) -> bool:
    """Return whether the value of an option of that name may be a secret."""
    return _SENSITIVE.search(option.rpartition(".")[2]) is not None


def _git(folder: Path, *words: str) -> str | None:
    try:
        answer = ask(folder, *words, timeout_s=GIT_TIMEOUT_S, looks_up=True)
    except GitError:
        return None
    return answer.out.strip() if answer.status == 0 else None
