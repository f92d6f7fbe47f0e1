"""Which commit of the workspace a submitted run uses, and what of the work tree it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from osmosis_ai.escaping import printable

from ..errors import CommandError
from .findings import Finding, Severity, not_checked, refusal, warning

if TYPE_CHECKING:
    from osmosis_ai.platform.config_models import Experiment
    from osmosis_ai.platform.git import GitFacts, PinnedCommit

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """The repository, what runs of it, and what was found."""

    root: Path
    """Of the work tree."""
    repository: str
    """`owner/repo`."""
    pinned: str | None
    """The commit that the config names."""
    described: str
    """What runs, in words."""
    findings: tuple[Finding, ...]

    @property
    def is_here(self) -> bool:
        """Whether the files of the work tree are those that run."""
        return not any(finding.severity is Severity.WARNING for finding in self.findings)


def commit_facts(start: Path, experiment: Experiment) -> CommitFacts:
    """Return what a run of the workspace around a directory uses; raise CommandError."""
    from osmosis_ai.platform.git import find_commit, newest_known, read_facts
    from osmosis_ai.platform.workspace import WorkspaceError

    pinned = experiment.commit_sha
    try:
        facts = read_facts(start)
        commit = find_commit(facts.root, pinned) if pinned else None
        branch = experiment.branch or facts.default_branch
        newest = newest_known(facts.root, branch) if branch else None
    except WorkspaceError as error:
        raise CommandError(str(error), code=error.code) from None
    if commit:
        found = _pinned_findings(facts, commit)
    else:
        found = _unpinned_findings(facts, experiment.branch, is_known=newest is not None)
    return CommitFacts(
        root=facts.root,
        repository=facts.repository,
        pinned=pinned,
        described=f"{pinned}, pinned" if pinned else _newest(branch, newest),
        findings=(*found, *_work_tree_findings(facts)),
    )


def _newest(branch: str | None, commit: str | None) -> str:
    known = f", {commit[:12]} as far as is known here" if commit else ""
    return f"the newest on {_named(branch)} that is synced{known}"


def _named(branch: str | None) -> str:
    return printable(branch) if branch else "the default branch"


def _pinned_findings(facts: GitFacts, pinned: PinnedCommit) -> Iterator[Finding]:
    from osmosis_ai.platform.git import OnOrigin

    if pinned.on_origin is OnOrigin.NO:
        yield refusal(
            "commit_not_pushed",
            f"the origin does not have the commit {pinned.name}",
            "push it with `git push`, or correct experiment.commit_sha",
        )
    if pinned.on_origin is OnOrigin.UNKNOWN:
        yield not_checked(
            "commit_unknown",
            f"whether the origin has the commit {pinned.name} is not known",
            pinned.reason,
        )
    if pinned.commit and facts.head and pinned.commit != facts.head:
        yield warning(
            "other_commit", f"what runs is {pinned.name}, and checked out is {facts.head[:12]}"
        )


def _unpinned_findings(facts: GitFacts, branch: str | None, *, is_known: bool) -> Iterator[Finding]:
    wanted = branch or facts.default_branch or facts.branch
    if facts.head is None:
        yield refusal(
            "no_commit",
            "the workspace has no commit yet, and a platform runs what is committed",
            "`git add`, `git commit` and `git push` what is to run",
        )
    elif branch and not is_known:
        yield warning(
            "unknown_branch",
            f"the origin has no branch {printable(branch)}, as far as is known here",
            "push it, or `git fetch` where it was pushed from elsewhere",
        )
    elif facts.branch is None or facts.branch != wanted:
        here = f"{printable(facts.branch)} is" if facts.branch else "no branch is"
        yield warning(
            "feature_branch",
            f"what runs is {_named(wanted)}, and {here} checked out",
            f"merge into {_named(wanted)}, or name another pushed branch with experiment.branch, "
            "or a pushed commit with experiment.commit_sha",
        )


def _work_tree_findings(facts: GitFacts) -> Iterator[Finding]:
    if facts.unpushed and not facts.is_known_there:
        yield warning(
            "unpushed",
            "nothing was ever pushed to the origin, as far as is known here, so there is "
            "no commit that could run",
            "`git push`, or `git fetch` where it was pushed from elsewhere",
        )
    elif facts.unpushed:
        commits = "1 commit is" if facts.unpushed == 1 else f"{facts.unpushed} commits are"
        yield warning(
            "unpushed", f"{commits} not pushed, and what is not pushed does not run", "`git push`"
        )
    if facts.is_dirty:
        count = len(facts.changed)
        files = "1 file differs" if count == 1 else f"{count} files differ"
        names = ", ".join(map(printable, facts.changed[:_SHOWN]))
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        yield warning(
            "dirty_tree",
            f"{files} from the commit ({names}{more}); what runs is the commit",
            "commit and push what is meant to run",
        )
