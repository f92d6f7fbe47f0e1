"""What is tried on this machine before a run is submitted: its code is imported, and rows are run.

What is found is a warning: a rollout's packages may exist only on the platform. With `--strict` it
forbids to submit. Sends nothing to the platform.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmosis_ai.escaping import printable

from .findings import Finding, Severity, in_order, not_checked, strictly, warning

if TYPE_CHECKING:
    from osmosis_ai.platform.config_file import ConfigFile
    from osmosis_ai.platform.config_models import RunConfig

    from .preflight_child import Ended, RolloutProcesses
    from .preflight_options import Preflight

IMPORT_LIMIT_S = 45.0
"""Longer than the import's own deadline: for code that cannot be interrupted."""
_STOPS = ("import", "not_installed", "no_agent", "no_grader", "needs_secret")
"""Codes of findings with which no row can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """What is tried."""

    config: RunConfig
    path: Path
    """Of the config file."""
    entrypoint: str
    """From the workspace's root."""
    processes: RolloutProcesses
    missing: Sequence[str]
    """Names of secrets that are not set on this machine."""

    @classmethod
    def of(cls, file: ConfigFile[RunConfig], root: Path) -> Rollout:
        """Return the rollout of a config file in a workspace."""
        from osmosis_ai.platform.workspace import ROLLOUTS

        from .preflight_child import RolloutProcesses

        config = file.config
        env = config.env or {}
        required = config.secrets.required if config.secrets else []
        environment = {**os.environ, **env}
        return cls(
            config=config,
            path=file.path,
            entrypoint=f"{ROLLOUTS}/{config.experiment.rollout}/{config.experiment.entrypoint}",
            processes=RolloutProcesses.of(root, environment, secrets=required, hidden=tuple(env)),
            missing=[name for name in required if not environment.get(name)],
        )

    def failed(self, code: str, message: str, cure: str = "") -> Finding:
        """Return the finding of a failure, whose cause may be a secret that is not set here."""
        named = [name for name in self.missing if name in message]
        if not named:
            return warning(code, message, cure)
        return not_checked(
            "needs_secret",
            message,
            f"{', '.join(named)} is not set on this machine; export it or add it to .env",
        )


def try_rollout(
    file: ConfigFile[RunConfig],
    chosen: Preflight,
    *,
    root: Path,
    is_commit: bool = True,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Return what trying a config's rollout on this machine finds, most important first.

    `is_commit` is whether the files here are those of the commit that is going to run; `tell` gets
    a line on what is going on.
    """
    if chosen.is_off:
        return []
    found = list(_tried(Rollout.of(file, root), chosen, tell))
    if not is_commit:
        found.append(
            not_checked(
                "work_tree",
                "the files here were tried, which are not those of the commit that runs",
            )
        )
    return in_order(strictly(found) if chosen.strict else found)


def _tried(rollout: Rollout, chosen: Preflight, tell: Callable[[str], None]) -> Iterator[Finding]:
    tell(f"importing {printable(rollout.entrypoint)}")
    found = list(_imported(rollout))
    yield from found
    if any(finding.code in _STOPS for finding in found) or not (chosen.run_row or chosen.model):
        return
    from .preflight_rows import EMBEDDED, run_rows

    if chosen.run_row:
        tell("running a row against the embedded endpoint")
        found = list(run_rows(rollout, EMBEDDED, 1))
        yield from found
        if any(finding.severity is Severity.WARNING for finding in found):
            return  # the model would be paid to find the same
    if chosen.model is not None:
        tell(f"running rows with {printable(chosen.model)}")
        yield from run_rows(rollout, chosen.model, chosen.rows)


def _imported(rollout: Rollout) -> Iterator[Finding]:
    words = ["-m", "osmosis_cli.platform.preflight_import", rollout.entrypoint]
    ended = rollout.processes.run(words, limit_s=IMPORT_LIMIT_S)
    shown = printable(rollout.entrypoint)
    found = ended.document if ended.in_time and not ended.status else None
    if found is None:
        what = rollout.processes.shown(_end(ended))
        yield rollout.failed("import", f"{shown} cannot be imported: {what}")
    elif "missing" in found:
        yield _missing_module(rollout, found)
    elif "error" in found:
        told = rollout.processes.shown(found["error"])
        what = ": " if found["code"] == "no_agent" else " cannot be imported: "
        yield rollout.failed(found["code"], shown + what + told)
    else:
        yield from _roles(rollout, found)


def _missing_module(rollout: Rollout, found: dict[str, Any]) -> Finding:
    name = printable(found["missing"])
    where = printable(found["where"])
    if found["has_package"]:
        return rollout.failed("import", f"{where} imports {name}, which its package does not have")
    return not_checked(
        "not_installed",
        f"{where} imports {name}, which is not installed here; the code was not checked",
        f"the platform installs what {_project(rollout)} names",
    )


def _project(rollout: Rollout) -> str:
    return printable(f"rollouts/{rollout.config.experiment.rollout}/pyproject.toml")


def _roles(rollout: Rollout, found: dict[str, Any]) -> Iterator[Finding]:
    shown = printable(rollout.entrypoint)
    if not found["is_workflow"]:
        yield rollout.failed(
            "no_workflow",
            f"{shown} defines no AgentWorkflow, which is what a platform runs",
            "derive the agent from osmosis_ai.rollout.AgentWorkflow",
        )
    elif not found["has_grader"]:
        yield rollout.failed(
            "no_grader",
            f"{shown} defines and imports no Grader, so that no run gets a score",
            "derive a class from osmosis_ai.rollout.Grader in that file",
        )


def _end(ended: Ended) -> str:
    """How a process ended that gave no answer."""
    if not ended.in_time:
        return f"it was not done after {IMPORT_LIMIT_S:g} s"
    how = f"signal {-ended.status}" if ended.status < 0 else f"status {ended.status}"
    words = ended.last_words.strip().splitlines()
    return f"it ended the process ({how}){': ' + words[-1] if words else ''}"
