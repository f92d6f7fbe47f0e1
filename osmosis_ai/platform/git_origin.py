"""The remote `origin` of a work tree: which GitHub repository it is, and what it has.

A URL's credentials are in no result, no message and no program's arguments.
"""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..escaping import printable
from .git_command import GitError, ask, without_credentials

ORIGIN = "refs/remotes/origin/"
REMOTE_TIMEOUT_S = 10.0
_REMOTE_PROTOCOLS = "https:http:ssh:git:file"
_HOSTS = ("github.com", "www.github.com", "ssh.github.com")
_SCHEMES = ("https", "ssh", "git+ssh")
_SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(?P<host>[^@/:\s]+):(?P<path>[^:\s]+)")
_HOST = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OWNER = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAME = re.compile(r"[a-z0-9._-]+")
_TOKEN_AS_USER = re.compile(r"gh[pousr]_\w+|github_pat_\w+")


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
            timeout=REMOTE_TIMEOUT_S,
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


def origin_tips(root: Path) -> tuple[str, ...]:
    """Return the commits that the origin's branches and tags point to; asks the origin.

    Raise GitError where it does not answer within `REMOTE_TIMEOUT_S`, or refuses.
    """
    *_, written = _origin_urls(root)
    url, settings = _credentials_apart(written)
    words = ("ls-remote", "--heads", "--tags", "origin")
    with tempfile.TemporaryDirectory(prefix="osmosis-git-") as outside:
        # Outside of the work tree, whose configuration could name a program to run.
        answer = ask(
            Path(outside),
            *words,
            settings=[*settings, ("remote.origin.url", url)],
            timeout_s=REMOTE_TIMEOUT_S,
            protocols=_REMOTE_PROTOCOLS,
        )
    if answer.status:
        raise GitError(f"the origin cannot be asked: {answer.complaint}", "git_remote")
    refs = {}
    for line in answer.out.splitlines():
        commit, _, ref = line.partition("\t")
        refs[ref.removesuffix("^{}")] = commit  # of an annotated tag, its commit comes last
    return tuple(sorted(set(refs.values())))


def _credentials_apart(url: str) -> tuple[str, list[tuple[str, str]]]:
    """The URL without a password or token, and the settings that give it to git instead.

    Arguments of a program can be read by every user of the machine.
    """
    parts = urlsplit(url) if "://" in url else None
    if parts is None or parts.scheme not in ("https", "http") or "@" not in parts.netloc:
        return url, []
    user, place = parts.netloc.rpartition("@")[::2]
    name, _, password = user.partition(":")
    if not password and not _TOKEN_AS_USER.fullmatch(name):
        return url, []  # a user's name alone
    basic = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode("ascii")
    header = (f"http.{parts.scheme}://{place}/.extraHeader", f"Authorization: Basic {basic}")
    return parts._replace(netloc=place).geturl(), [header]
