"""A run folder that a session is going to write to, and how a new one is begun."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import run_directory
from .fingerprint import EvalFingerprint, RunPlan
from .journal import create

if TYPE_CHECKING:
    from ..run_result import RunResult
    from .replay import KeptRun
    from .run_lines import RowRun


@dataclass(slots=True)
class Opened:
    """A run folder that a session is going to write to."""

    folder: Path
    plan: RunPlan
    session: int
    """Number of the session, from 1."""
    make: Callable[[], None]
    """Makes it so on disk; OSError."""
    has_begun: bool = False
    """Whether that was done: runs may end."""
    cached: dict[RowRun, KeptRun] = field(default_factory=dict)
    """Runs that are not run again."""
    repeated: list[RunResult] = field(default_factory=list)
    """Runs as earlier sessions left them, that were run again since, or are to be."""
    unscored: dict[RowRun, RunResult] = field(default_factory=dict)
    """Runs that need nothing but another call of their eval functions."""
    notes: list[str] = field(default_factory=list)
    """What there is to say about it, a line each."""

    def begin(self) -> None:
        """Make it so on disk, once, before the first run is kept; OSError."""
        if not self.has_begun:
            self.make()
            self.has_begun = True


def new(
    folder: Path, identity: EvalFingerprint, notes: list[str], *, aside: Path | None = None
) -> Opened:
    """Return a folder for an evaluation that starts anew; `aside`: where what is there goes."""

    def make() -> None:
        if aside is not None:
            os.rename(folder, aside)
        run_directory.make_private(folder)
        data = identity.to_json()
        plan = data.pop("plan")
        header = {"name": folder.name, "created_at": time.time(), **data}
        create(folder, header, session_of(1, plan))

    return Opened(folder, identity.plan, 1, make, notes=notes)


def session_of(number: int, plan: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the line of a session that begins now says."""
    return {"number": number, "started_at": time.time(), "pid": os.getpid(), "plan": plan}
