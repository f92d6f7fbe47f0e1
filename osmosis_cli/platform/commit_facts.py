"""Which commit of the workspace a submitted run uses, and what of the work tree it does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import CommandError

if TYPE_CHECKING:
    from osmosis_ai.platform.config_models import Experiment
    from osmosis_ai.platform.git import GitFacts

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found before something is submitted: a sentence, and what helps."""

    severity: Literal["refused", "warning"]
    """Where it is refused, nothing is sent."""
    code: str
    """For programs, as `dirty_tree`."""
    message: str
    cure: str = ""

    def __str__(self) -> str:
        return self.message + (f": {self.cure}" if self.cure else "")


refusal = partial(Finding, "refused")
warning = partial(Finding, "warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """The repository, what runs of it, and what was found."""

    repository: str
    """`owner/repo`."""
    pinned: str | None
    """The commit that the config names."""
    described: str
    """What runs, in words."""
    findings: tuple[Finding, ...]


def read_work_tree(start: Path) -> GitFacts:
    """Return what git tells of the work tree around a directory; raise CommandError."""
    from osmosis_ai.platform.git import read_facts

    with _git_errors():
        return read_facts(start)


def commit_facts(facts: GitFacts, experiment: Experiment, *, is_cloned_here: bool) -> CommitFacts:
    """Return what a run of a work tree uses; raise CommandError.

    `is_cloned_here`: the platform clones the work tree itself, so nothing has to be pushed.
    """
    from osmosis_ai.platform.git import find_here, newest_known

    pinned, branch = experiment.commit_sha, experiment.branch
    with _git_errors():
        if is_cloned_here:
            newest = find_here(facts.root, f"refs/heads/{branch}") if branch else facts.head
            findings = [*_findings_here(facts, experiment, newest)]
            what = f"the newest on {_named(branch)}" if branch else "checked out"
            described = f"{(newest or '')[:12]}, {what} here"
        else:
            branch = branch or facts.default_branch
            newest = newest_known(facts.root, branch) if branch else None
            findings = [*_findings_there(facts, experiment, newest), *_unpushed_findings(facts)]
            known = f", {newest[:12]} as far as is known here" if newest else ""
            described = f"the newest on {_named(branch)} that is synced{known}"
    return CommitFacts(
        repository=facts.repository,
        pinned=pinned,
        described=f"{pinned}, pinned" if pinned else described,
        findings=(*findings, *_dirty_findings(facts, is_cloned_here=is_cloned_here)),
    )


@contextmanager
def _git_errors() -> Iterator[None]:
    from osmosis_ai.platform.workspace import WorkspaceError

    try:
        yield
    except WorkspaceError as error:
        raise CommandError(str(error), code=error.code) from None


def _named(branch: str | None) -> str:
    return branch or "the default branch"


def _findings_here(
    facts: GitFacts, experiment: Experiment, newest: str | None
) -> Iterator[Finding]:
    from osmosis_ai.platform.git import find_here

    pinned, branch = experiment.commit_sha, experiment.branch
    if facts.head is None:
        yield _no_commit("`git add` and `git commit` what is to run")
    elif pinned and (commit := find_here(facts.root, pinned)):
        yield from _other_commit(facts, pinned, commit)
    elif pinned:
        what = f"the workspace has no commit {pinned}"
        yield refusal("commit_unknown", what, "correct experiment.commit_sha")
    elif newest is None:
        what = f"the workspace has no branch {_named(branch)}"
        yield refusal("unknown_branch", what, "correct experiment.branch")
    elif branch and branch != facts.branch:
        yield _other_branch(facts, branch, "check it out, or correct experiment.branch")


def _findings_there(
    facts: GitFacts, experiment: Experiment, newest: str | None
) -> Iterator[Finding]:
    from osmosis_ai.platform.git import find_here, is_pushed

    pinned = experiment.commit_sha
    if pinned is None:
        yield from _unpinned_findings(facts, experiment.branch, is_known=newest is not None)
        return
    commit = find_here(facts.root, pinned)
    if commit is None or not is_pushed(facts.root, commit):
        yield warning(
            "commit_not_pushed",
            f"the origin has no commit {pinned}, as far as is known here",
            "push it, or `git fetch` where it was pushed from elsewhere",
        )
    yield from _other_commit(facts, pinned, commit)


def _other_commit(facts: GitFacts, pinned: str, commit: str | None) -> Iterator[Finding]:
    if commit and facts.head and commit != facts.head:
        yield warning(
            "other_commit", f"what runs is {pinned}, and checked out is {facts.head[:12]}"
        )


def _unpinned_findings(facts: GitFacts, branch: str | None, *, is_known: bool) -> Iterator[Finding]:
    wanted = branch or facts.default_branch or facts.branch
    if facts.head is None:
        yield _no_commit("`git add`, `git commit` and `git push` what is to run")
    elif branch and not is_known:
        yield warning(
            "unknown_branch",
            f"the origin has no branch {branch}, as far as is known here",
            "push it, or `git fetch` where it was pushed from elsewhere",
        )
    elif facts.branch is None or facts.branch != wanted:
        cure = (
            f"merge into {_named(wanted)}, or name another pushed branch with experiment.branch, "
            "or a pushed commit with experiment.commit_sha"
        )
        yield _other_branch(facts, wanted, cure)


def _no_commit(cure: str) -> Finding:
    what = "the workspace has no commit yet, and a platform runs what is committed"
    return refusal("no_commit", what, cure)


def _other_branch(facts: GitFacts, branch: str | None, cure: str) -> Finding:
    here = f"{facts.branch} is" if facts.branch else "no branch is"
    return warning("feature_branch", f"what runs is {_named(branch)}, and {here} checked out", cure)


def _unpushed_findings(facts: GitFacts) -> Iterator[Finding]:
    if not facts.unpushed:
        return
    commits = "1 commit is" if facts.unpushed == 1 else f"{facts.unpushed} commits are"
    what, cure = f"{commits} not pushed, and what is not pushed does not run", "`git push`"
    if not facts.is_known_there:
        what = "nothing was ever pushed to the origin, as far as is known here, so there is no "
        what += "commit that could run"
        cure += ", or `git fetch` where it was pushed from elsewhere"
    yield warning("unpushed", what, cure)


def _dirty_findings(facts: GitFacts, *, is_cloned_here: bool) -> Iterator[Finding]:
    if facts.changed:
        count = len(facts.changed)
        files = "1 file differs" if count == 1 else f"{count} files differ"
        names = ", ".join(facts.changed[:_SHOWN])
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        what = f"{files} from the commit ({names}{more}); what runs is the commit"
        push = "" if is_cloned_here else "and push "
        yield warning("dirty_tree", what, f"commit {push}what is meant to run")
