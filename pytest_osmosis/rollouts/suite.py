"""One evaluation ready to run: its rows, agent and eval functions.

`Suite.run` makes a `RolloutRecord` of a `Rollout`: see `rollout`, and `user_code` for how an agent
is run. Knows no pytest.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from osmosis_ai.secret import redact

from ..escaping import shown_path
from ..run_result import RolloutRecord, RunId, RunResult, SuiteInfo, row_label
from ..storage.run_directory import OSMOSIS

if TYPE_CHECKING:
    from pathlib import Path

    from ..dataset.dataset import Dataset
    from ..dataset.rows import Row
    from ..spec import EvalSpec, SessionSpec
    from ..user_code.agent import Agent
    from ..user_code.eval_function import EvalFn
    from ..user_code.workflow import Grading


class OneRun(Protocol):
    """One run of a row: see `Rollout`."""

    row: Row
    run_id: RunId

    def run(self) -> Awaitable[RolloutRecord]:
        """Run the agent, and score what it gave."""

    def score_again(self, recorded: RolloutRecord) -> Awaitable[RolloutRecord]:
        """Score a recorded run once more."""


class Suite:
    """An `EvalSpec` with everything loaded that it names."""

    def __init__(
        self,
        spec: EvalSpec,
        session: SessionSpec,
        *,
        info: SuiteInfo,
        dataset: Dataset,
        agent: Agent,
        eval_fns: Sequence[EvalFn] = (),
        grading: Grading | None = None,
    ) -> None:
        self.spec = spec
        self.info = info
        self.dataset = dataset
        self.agent = agent
        self.eval_fns = eval_fns
        self.grading = grading
        self.keep_answers = session.answers
        self.trajectories = session.trajectories
        self.debug_dir = None if session.debug_dir is None else str(session.debug_dir)
        self.names_rollouts = spec.model.persona is not None
        """Whether its model is sent what each rollout is called."""
        self.gated = spec.companion_of is not None
        """Whether its runs are observations, which something else decides on."""
        limit = agent.max_concurrent
        self.slots = None if limit is None else asyncio.Semaphore(limit)
        """Where the agent limits how many of its rollouts are in flight."""
        self.recorded_in: Path | None = None
        """The folder of the evaluation that its runs are of, where they are not its own."""

    def observes(self, row_index: int) -> bool:
        """Return whether a run of this row decides nothing by itself."""
        if self.gated or not self.info.settings.get("quarantine"):
            return self.gated
        return self.info.is_quarantined(row_index, self.dataset.row_id(row_index))

    @property
    def row_names(self) -> Iterator[str]:
        """What people call its rows."""
        known = self.dataset.row_id
        return (row_label(index, known(index)) for index in self.dataset.row_indices)

    def runs_of(self, row_index: int) -> Iterable[int]:
        """The run indices of a row."""
        return range(self.spec.n)

    def renamed(self, name: str) -> Suite:
        """The same under another name."""
        other = copy.copy(self)
        other.spec, other.info = replace(self.spec, name=name), replace(self.info, name=name)
        return other

    def run(self, rollout: OneRun) -> Awaitable[RolloutRecord]:
        """Run a row once and score what came of it."""
        return rollout.run()

    def release(self) -> None:
        """Drop the user's code once the session has ended; harmless when repeated.

        Pytest's import hook keeps the session until the process ends. Python then closes no file
        that a module holds whose functions are still held here: what it wrote last would be lost.
        """
        for name in ("agent", "eval_fns", "grading"):
            vars(self).pop(name, None)

    def place(self, row_index: int) -> str | None:
        """Where people find a row: `data.jsonl:3`; None in a format without lines.

        None too of rows that a test wrote itself, in a file of ours.
        """
        line = self.dataset.line(row_index)
        path = self.dataset.path
        return None if line is None or OSMOSIS in path.parts else f"{shown_path(path)}:{line}"

    def explain(self, record: RolloutRecord) -> str:
        """Return what the item of a run prints that did not pass; redacted.

        Nothing but its error and its row is known of a run that something else ended.
        """
        from .failure_text import at_row, explanation, harmless

        result = record.result
        if not result.duration_ms:
            row = at_row(self.place(result.row_index))
            return redact(harmless([record.frames or result.error or "", row]))
        return explanation(
            record,
            threshold=self.spec.pass_threshold,
            max_turns=self.spec.max_turns,
            place=self.place(result.row_index),
            whole=self.trajectories,
        )

    def lost(self, run_id: RunId, *, error: str, error_type: Any) -> RunResult:
        """The result of a run that something other than its own code ended."""
        return RunResult(
            suite=run_id.suite,
            row_index=run_id.row_index,
            run_index=run_id.run_index,
            row_id=self.dataset.row_id(run_id.row_index),
            error=error,
            error_type=error_type,
        )
