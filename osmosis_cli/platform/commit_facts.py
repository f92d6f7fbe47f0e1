"""Which commit of the workspace a submitted run uses, and what of the work tree it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import command_errors

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
    from osmosis_ai.platform.workspace import WorkspaceError

    with command_errors(WorkspaceError):
        return read_facts(start)


def commit_facts(facts: GitFacts, experiment: Experiment, *, is_cloned_here: bool) -> CommitFacts:
    """Return what a run of a work tree uses; raise CommandError.

    `is_cloned_here`: the platform clones the work tree itself, so nothing has to be pushed.
    """
    from osmosis_ai.platform.git import find_here, newest_known
    from osmosis_ai.platform.workspace import WorkspaceError

    pinned, branch = experiment.commit_sha, experiment.branch
    with command_errors(WorkspaceError):
        if is_cloned_here:
            newest = find_here(facts.root, f"refs/heads/{branch}") if branch else facts.head
            what = f"the newest on {branch}" if branch else "checked out"
            described = f"{(newest or '')[:12]}, {what} here"
        else:
            wanted = branch or facts.default_branch
            newest = newest_known(facts.root, wanted) if wanted else None
            known = f", {newest[:12]} as far as is known here" if newest else ""
            described = f"the newest on {_named(wanted)} that is synced{known}"
        findings = [*_findings(facts, experiment, newest, is_here=is_cloned_here)]
    if not is_cloned_here:
        findings += _unpushed_findings(facts)
    return CommitFacts(
        repository=facts.repository,
        pinned=pinned,
        described=f"{pinned}, pinned" if pinned else described,
        findings=(*findings, *_dirty_findings(facts, is_cloned_here=is_cloned_here)),
    )


def _named(branch: str | None) -> str:
    return branch or "the default branch"


def _findings(
    facts: GitFacts, experiment: Experiment, newest: str | None, *, is_here: bool
) -> Iterator[Finding]:
    """Yield what is found of the commit that runs; with `is_here` one of this work tree."""
    from osmosis_ai.platform.git import find_here, is_pushed

    pinned, branch = experiment.commit_sha, experiment.branch
    if facts.head is None and (is_here or not pinned):
        cure = "`git add` and `git commit`" if is_here else "`git add`, `git commit` and `git push`"
        what = "the workspace has no commit yet, and a platform runs what is committed"
        yield refusal("no_commit", what, f"{cure} what is to run")
    elif pinned:
        commit = find_here(facts.root, pinned)
        if commit is None or not (is_here or is_pushed(facts.root, commit)):
            yield _unknown("commit", "commit_sha", pinned, is_here=is_here)
        if commit and facts.head and commit != facts.head:
            what = f"what runs is {pinned}, and checked out is {facts.head[:12]}"
            yield warning("other_commit", what)
    elif branch and newest is None:
        yield _unknown("branch", "branch", branch, is_here=is_here)
    elif branch or not is_here:
        wanted = branch or facts.default_branch or facts.branch
        if facts.branch is None or facts.branch != wanted:
            here = f"{facts.branch} is" if facts.branch else "no branch is"
            cure = (
                "check it out, or correct experiment.branch"
                if is_here
                else f"merge into {_named(wanted)}, or name another pushed branch with "
                "experiment.branch, or a pushed commit with experiment.commit_sha"
            )
            what = f"what runs is {_named(wanted)}, and {here} checked out"
            yield warning("feature_branch", what, cure)


def _unknown(noun: str, key: str, name: str, *, is_here: bool) -> Finding:
    if is_here:
        what = f"the workspace has no {noun} {name}"
        return refusal(f"unknown_{noun}", what, f"correct experiment.{key}")
    what = f"the origin has no {noun} {name}, as far as is known here"
    cure = "push it, or `git fetch` where it was pushed from elsewhere"
    return warning(f"unknown_{noun}", what, cure)


def _unpushed_findings(facts: GitFacts) -> Iterator[Finding]:
    if not facts.unpushed:
        return
    commits = "1 commit is" if facts.unpushed == 1 else f"{facts.unpushed} commits are"
    what = f"{commits} not pushed, and what is not pushed does not run"
    yield warning("unpushed", what, "`git push`")


def _dirty_findings(facts: GitFacts, *, is_cloned_here: bool) -> Iterator[Finding]:
    if facts.changed:
        count = len(facts.changed)
        files = "1 file differs" if count == 1 else f"{count} files differ"
        names = ", ".join(facts.changed[:_SHOWN])
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        what = f"{files} from the commit ({names}{more}); what runs is the commit"
        push = "" if is_cloned_here else "and push "
        yield warning("dirty_tree", what, f"commit {push}what is meant to run")
