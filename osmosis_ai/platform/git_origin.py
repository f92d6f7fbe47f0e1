"""The remote `origin` of a work tree: which GitHub repository it is.

A URL's credentials are in no result and no message.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..escaping import printable
from .git_command import GitError, ask, without_credentials

ORIGIN = "refs/remotes/origin/"
_HOSTS = ("github.com", "www.github.com", "ssh.github.com")
_SCHEMES = ("https", "ssh", "git+ssh")
_SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(?P<host>[^@/:\s]+):(?P<path>[^:\s]+)")
_HOST = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OWNER = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAME = re.compile(r"[a-z0-9._-]+")


def repository_of(url: str) -> str | None:
    """Return the `owner/repo` of a GitHub https, ssh or scp-like URL; None of any other."""
    place = _place(url)
    return None if place is None or place.host not in _HOSTS else place.repository


@dataclass(frozen=True, slots=True)
class _Place:
    """What a URL leads to."""

    host: str
    """Lower-case; of an ssh URL perhaps a name in the user's ~/.ssh/config."""
    repository: str | None
    """`owner/repo`, lower-case, where the path is like that."""
    is_ssh: bool


def _place(url: str) -> _Place | None:
    if "://" not in url:
        match = _SCP_LIKE.fullmatch(url)
        return match and _Place(match["host"].lower(), _repository(match["path"]), is_ssh=True)
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname or "", parts.scheme.lower()
    except ValueError:
        return None
    if scheme not in _SCHEMES or parts.query or parts.fragment:
        return None
    return _Place(host, _repository(parts.path), is_ssh=scheme != "https")


def _repository(path: str) -> str | None:
    owner, _, name = path.strip("/").lower().removesuffix(".git").partition("/")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in (".", ".."):
        return None
    return f"{owner}/{name}"


def _behind_alias(url: str) -> str | None:
    """The repository of an ssh URL whose host the user's ~/.ssh/config says to be GitHub's."""
    place = _place(url)
    if place is None or not place.is_ssh or not _HOST.fullmatch(place.host):
        return None
    try:
        done = subprocess.run(
            ["ssh", "-G", place.host],  # reads the configuration, and connects to nothing
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10.0,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    names = (line.partition(" ")[2] for line in done.stdout.splitlines() if line[:9] == "hostname ")
    return place.repository if next(names, "").lower() in _HOSTS else None


def origin_repository(root: Path) -> str:
    """Return the origin of a work tree as `owner/repo`, lower-case.

    Raise GitError where there is none, or it is no GitHub repository.
    """
    urls = list(_origin_urls(root))
    if not urls:
        raise GitError(
            f"the work tree {printable(str(root))} has no remote named origin; the platform "
            "clones it: `git remote add origin git@github.com:OWNER/REPO.git`",
            "git_no_origin",
        )
    found = next((name for url in urls if (name := repository_of(url))), None)
    found = found or _behind_alias(urls[0])
    if found is None:
        shown = printable(without_credentials(urls[0]))
        raise GitError(
            f"the remote origin is {shown}, which is no GitHub repository; it must look like "
            "https://github.com/OWNER/REPO.git or git@github.com:OWNER/REPO.git",
            "git_not_github",
        )
    return found


def _origin_urls(root: Path) -> Iterator[str]:
    """The origin's URL as it is written, and as `url.*.insteadOf` makes it."""
    for words in (("config", "--get-all", "remote.origin.url"), ("remote", "get-url", "origin")):
        answer = ask(root, *words)
        if answer.status == 0 and answer.out.strip():
            yield answer.out.splitlines()[0]
