"""Facts about the workspace's Git work tree: what its origin is, and what of it is not there yet.

Asks the git executable, and no network. A URL's credentials are in no fact and in no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..escaping import printable
from .git_command import GitError, GitOutput, ask, without_credentials
from .workspace import find_root

ORIGIN = "refs/remotes/origin/"
_GITHUB = re.compile(
    r"(?:(?:https|ssh|git\+ssh)://(?:[^@/\s]*@)?(?:www\.|ssh\.)?github\.com(?::\d+)?/"
    r"|(?:[^@/:\s]+@)?(?:www\.|ssh\.)?github\.com:/?)"
    r"(?P<name>[a-z0-9][a-z0-9-]*/(?!\.{1,2}(?:\.git)?/?$)[a-z0-9._-]+?)(?:\.git)?/?"
)
_USUAL_BRANCHES = ("main", "master")
_STARTS_PROGRAM = r"^filter\..*\.(clean|process)$"


@dataclass(frozen=True, slots=True)
class GitFacts:
    """A work tree, its origin, and how they differ as far as this machine knows."""

    root: Path
    """The top of the work tree, resolved."""
    repository: str
    """The origin as `owner/repo`, lower-case: what the platform knows the workspace by."""
    head: str | None
    """The full hash of the commit that is checked out; None before the first commit."""
    branch: str | None
    """The branch that is checked out; None with a detached HEAD."""
    default_branch: str | None
    """The origin's default branch as far as is known here, else its `main` or `master`."""
    changed: tuple[str, ...]
    """Files that differ from the commit or are not in Git, relative to the root.

    Neither what is ignored nor Python's caches."""
    unpushed: int
    """Commits of HEAD that no branch of the origin had at the last fetch or push."""

    @property
    def is_pushed(self) -> bool:
        """Whether the origin has what is checked out as the newest of its default branch."""
        return not self.unpushed and self.branch == self.default_branch


def read_facts(start: Path) -> GitFacts:
    """Return the facts of the work tree around a directory, without a network.

    Raise WorkspaceError where there is none, GitError for everything else that git cannot tell.
    """
    root = _root(start)
    repository = origin_repository(root)
    settings = _without_programs(root)
    words = ("--porcelain=v2", "--branch", "-z", "--untracked-files=normal")
    answer = ask(root, "status", *words, "--ignore-submodules=all", settings=settings)
    head, branch, changed = _status(_checked(answer, root).out)
    return GitFacts(
        root=root,
        repository=repository,
        head=head,
        branch=branch,
        default_branch=_default_branch(root),
        changed=changed,
        unpushed=_unpushed(root) if head else 0,
    )


def read_repository(start: Path) -> str:
    """Return the origin of the work tree around a directory as `owner/repo`, lower-case.

    Raise WorkspaceError where there is no work tree, GitError unless its origin is at GitHub.
    """
    return origin_repository(_root(start))


def newest_known(root: Path, branch: str) -> str | None:
    """Return the newest commit of a branch of the origin as of the last fetch or push."""
    return find_here(root, f"{ORIGIN}{branch}")


def is_pushed(root: Path, commit: str) -> bool:
    """Return whether a branch of the origin had a commit at the last fetch or push."""
    words = ("--count=1", "--format=%(refname)", f"--contains={commit}", ORIGIN)
    return bool(ask(root, "for-each-ref", *words).out.strip())


# ---- the origin


def repository_of(url: str) -> str | None:
    """Return the `owner/repo` of a GitHub https, ssh or scp-like URL; None of any other."""
    place = _GITHUB.fullmatch(url.lower())
    return None if place is None else place["name"]


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


# ---- the work tree


def _root(start: Path) -> Path:
    root = find_root(start)
    answer = ask(root, "rev-parse", "--show-toplevel")
    if "dubious ownership" in answer.complaint or "safe.directory" in answer.complaint:
        raise GitError(
            f"git does not read {printable(str(root))}, which belongs to another user; if you "
            f"trust it: `git config --global --add safe.directory {printable(str(root))}`",
            "git_not_trusted",
        )
    top = _checked(answer, root).out.removesuffix("\n")
    if Path(top).resolve() != root:
        raise GitError(
            f"{printable(str(root / '.git'))} is no repository of the folder that it is in; "
            "remove it, or repair it with `git init`",
            "git_broken",
        )
    return root


def _checked(answer: GitOutput, root: Path) -> GitOutput:
    if answer.status:
        raise GitError(
            f"git cannot read the repository {printable(str(root))}: {answer.complaint}",
            "git_broken",
        )
    return answer


def _without_programs(root: Path) -> list[tuple[str, str]]:
    """Settings against programs that the repository itself would run on changed files.

    Those of the user's own configuration (Git LFS) are kept.
    """
    words = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", _STARTS_PROGRAM)
    fields = ask(root, *words).out.split("\0")
    names = {
        name
        for scope, name in zip(fields[::2], fields[1::2], strict=False)
        if scope in ("local", "worktree")
    }
    required = {f"{name.rpartition('.')[0]}.required" for name in names}
    off = [(name, "") for name in sorted(names)]
    return off + [(name, "false") for name in sorted(required)]


def _status(text: str) -> tuple[str | None, str | None, tuple[str, ...]]:
    """The commit, the branch and the changed files of `git status --porcelain=v2 -z`."""
    head: str | None = None
    branch: str | None = None
    changed: list[str] = []
    entries = iter(text.split("\0"))
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if rest.startswith("branch.oid "):
            head = rest.removeprefix("branch.oid ")
        elif rest.startswith("branch.head "):
            branch = rest.removeprefix("branch.head ")
        elif kind in _FIELDS and not (kind == "?" and rest.endswith("__pycache__/")):
            changed.append(rest.split(" ", _FIELDS[kind])[-1])
        if kind == "2":
            next(entries, "")  # a renamed file's old name
    no_commit, detached = head == "(initial)", branch == "(detached)"
    return None if no_commit else head, None if detached else branch, tuple(changed)


_FIELDS = {"1": 7, "2": 8, "u": 9, "?": 0}
"""How many fields of an entry come before its path."""


def _unpushed(root: Path) -> int:
    answer = ask(root, "rev-list", "--count", "HEAD", "--not", "--remotes=origin")
    return int(_checked(answer, root).out)


def _default_branch(root: Path) -> str | None:
    answer = ask(root, "for-each-ref", "--format=%(refname) %(symref)", ORIGIN)
    refs = dict(line.partition(" ")[::2] for line in answer.out.splitlines())
    symref = refs.pop(f"{ORIGIN}HEAD", "")
    if symref:
        return symref.removeprefix(ORIGIN)
    names = [ref.removeprefix(ORIGIN) for ref in refs]
    if len(names) == 1:
        return names[0]
    return next((name for name in _USUAL_BRANCHES if name in names), None)


def find_here(root: Path, name: str) -> str | None:
    """Return the full hash of a commit, where the work tree has it, and no other like it."""
    answer = ask(root, "rev-parse", "--verify", f"{name}^{{commit}}")
    return answer.out.strip() or None if answer.status == 0 else None
