"""The evaluation where results come together: checks, records, evaluates gates, writes reports.

ReportingEvaluation
├── LocalEvaluation        runs the items itself
└── ControllerEvaluation   has xdist's workers run them (`distributed`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..items.protocol import Rollouts
from ..items.runner import ItemRunner, run_ids
from ..rollouts.cached import ResultCache
from ..run_result import RolloutRecord, RunId, RunResult, SuiteInfo
from ..storage.run_store import RunStore
from . import header, preflight, progress
from .evaluation import Evaluation
from .failed_runs import BeforeSummaries, ShortSummary
from .progress import ProgressCounter
from .recorder import Recorder
from .signals import CancelOnInterrupt, SignalHandlers
from .supervisor import Supervisor

if TYPE_CHECKING:
    from ..rollouts.suite import Suite
    from ..spec import SessionSpec
    from ..suite_results import EvalResult
    from .seams import Feature


FIGURES = (
    "pytest_osmosis.analysis.aggregate",
    "pytest_osmosis.analysis.score_table",
    "pytest_osmosis.reports.summary",
)
"""What the end of a session needs: imported while the first requests wait."""


class ReportingEvaluation(Evaluation):
    """The evaluation where results come together, in exactly one process of a session."""

    def __init__(
        self, config: pytest.Config, spec: SessionSpec, features: Sequence[Feature]
    ) -> None:
        infos: dict[str, SuiteInfo] = {}
        super().__init__(config, spec, features, infos)
        self._infos = infos
        self.store = RunStore(
            spec.keeping,
            root=config.rootpath,
            answers=spec.answers,
            on_failure=self.halt,
        )
        self.recorder = Recorder(
            config,
            spec,
            infos,
            self.gates,
            self.store,
            on_first=self._first_heard,
            with_row_data=self._with_row_data,
            features=features,
        )
        self.supervisor = Supervisor(
            batch_size=spec.batch_size,
            selected=self.recorder.selected,
            halt=self.halt,
            resize=self.resize_runs,
            place_of=self._place_of,
            planned=self._planned_at,
        )
        self.recorder.settled = self.supervisor.settled
        self._signals = SignalHandlers(self.recorder.interrupt)
        self._counter = ProgressCounter(
            self.recorder.selected, self._in_flight, refusals=self.supervisor.refusals
        )

    def plugins(self) -> dict[str, object]:
        """Return what has hooks of pytest: those who record and show too."""
        failed = self.recorder.failed
        letters = {"osmosis-letters": self.gates.letters} if self.gates.has_gated else {}
        return {
            **super().plugins(),
            "osmosis-recorder": self.recorder,
            **letters,
            "osmosis-failed-runs": failed,
            "osmosis-before-summaries": BeforeSummaries(failed),
            "osmosis-short-summary": ShortSummary(failed),
            "osmosis-cancel": CancelOnInterrupt(self._signals, self.cancel),
        }

    def start(self) -> None:
        """Check outputs, keys, rows and code, and open what is kept of earlier sessions."""
        self._signals.install()
        preflight.check(self.config, self.spec)
        with preflight.usage_errors():
            for feature in self.features:
                feature.check(self.spec)
        self._find_keys()
        self._prepare()
        preflight.check_models(self.spec)
        with preflight.usage_errors():
            for feature in self.features:
                feature.check_rows(self.suites)
        with preflight.usage_errors(self.config):
            for feature in self.features:
                feature.open(self.suites.values(), self.halt)
                feature.follow(self.gates.deciding, self.halt)
        self._start_embedded()
        self._open(self.suites.values())
        if self.spec.output and self.spec.keeping.journal:
            with preflight.usage_errors():
                self.store.guard_report(self.spec.output)
        self._begin_reports()

    def _open(self, suites: Iterable[Suite]) -> None:
        """Open what earlier sessions kept of these suites, and find what they are compared with."""
        infos = [suite.info for suite in suites]
        with preflight.usage_errors():
            self.store.open(self._identities(suites))
            self.store.add(suite.spec.name for suite in suites)
            self.store.lines += self.gates.begin(infos, self.store.folder_of)

    def _begin_reports(self) -> None:
        preflight.check_trajectories(self.spec.trajectories)
        is_shown = self.spec.reports or any(each.shows_environment for each in self.features)
        self.recorder.begin(preflight.environment(self.config, self.spec, is_shown=bool(is_shown)))
        progress.show(self.config, self._counter)

    def run_starts(self) -> None:
        """Note that a run starts; from any thread."""
        if self.supervisor.start():
            for feature in self.features:
                feature.first_run()

    def _in_flight(self, left: int) -> int:
        """Return how many rollouts are in flight, where so many have not ended."""
        return min(self.spec.batch_size, left) if self.supervisor.has_started else 0

    def _place_of(self, suite: str) -> str:
        return self._infos[suite].place

    def _planned_at(self, place: str) -> tuple[int, int]:
        """Return how many rows and runs of the session a model at an endpoint is asked."""
        found = [each for each in self.recorder.selected_infos() if each[0].place == place]
        return sum(info.rows for info, _ in found), sum(runs for _, runs in found)

    def _first_heard(self, run: RunResult) -> None:
        """Count a run; from any thread."""
        self._counter.ended(run)
        for feature in self.features:
            feature.run_ended(run)

    # ---- runs that end; from any thread

    def received(self, run: RunId, result: RunResult) -> None:
        """Take the result of a run that has ended, and is kept."""
        self.recorder.note(run, result)
        if self.store.log.has_unscored and self.store.take_back(result):  # it was paid before
            result = replace(result, tokens=0, cost_usd=None, llm_calls=0)
        self.supervisor.ended(result, others_scored=self.store.resumes)
        for feature in self.features:
            feature.run_made(result)

    def ended(self, run: RunId, record: RolloutRecord, lines: bytes | None = None) -> None:
        """Keep a run of this process, or of a shard by the lines that it has sent, and take it."""
        self.store.log.keep(run, record, lines)
        self.received(run, record.result)

    def paced(self, kind: str, not_before_s: float, said: str, place: str) -> None:
        """Note that a call was refused for its rate, or answered after one had been."""
        if kind == "ok":
            self.supervisor.answered(place)
        else:
            self.supervisor.pressed(said or kind, not_before_s, place)

    def halt(self, reason: str, *, spent: Callable[[], str] | None = None) -> None:
        """Start no further run, for this reason; `spent`: see `seams.Halt`."""
        self.supervisor.is_halted = True
        self.recorder.halt(reason, spent=spent)
        self.halt_runs(reason)

    def stuck(self, reason: str) -> None:
        """Halt: nothing more can be run in this process."""
        self.halt(reason)

    def _with_row_data(self, result: EvalResult) -> EvalResult:
        from .suite_rows import with_row_data

        return with_row_data(result, self.suites, self.spec)

    def close_runs(self, session: pytest.Session) -> None:
        """Count no run that ends from now on.

        A session that stops at a failure ends with that one: what ended after it does not count.
        """
        self._signals.is_reporting = True
        broken = session.exitstatus == pytest.ExitCode.INTERNAL_ERROR
        if not broken and self.recorder.was_cut_short(session):
            option = self.config.option
            stops = bool(option.maxfail or getattr(option, "stepwise", False))
            self.recorder.close_runs(leave_out_unreported=stops)

    def end(self, session: pytest.Session) -> None:
        """Note that all is reported, and let the exit status say whether a signal came before."""
        self.recorder.end(session)

    def _record(self, run: RunId) -> RolloutRecord | None:
        return self.store.log.record(run)

    def halt_runs(self, reason: str) -> None:
        """Start no further run."""
        raise NotImplementedError

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight."""
        raise NotImplementedError

    def add(self, suite: Suite) -> None:
        """Add a suite, and declare it to the recorder."""
        super().add(suite)
        self.recorder.declare(suite.info)

    def no_rows(self, path: Path, reason: str) -> None:
        """Note a data file of which no row is selected, for the end of the session too."""
        super().no_rows(path, reason)
        self.recorder.tell(reason)

    def header(self) -> list[str]:
        """Return the lines of the session's header, and what was found of earlier sessions."""
        return header.fitted(self.config, [*self._header_lines(), *self.store.take_lines()])

    def plan(self) -> list[str]:
        """Return what is going to run, and what was found of earlier sessions."""
        is_quiet = preflight.is_quiet(self.config)
        plans = [header.plan(*each) for each in self.recorder.selected_infos() if not is_quiet]
        lines = [*plans, *self.store.take_lines(quiet=is_quiet)]
        return header.fitted(self.config, lines)

    def check_interrupted_again(self) -> None:
        """Raise the KeyboardInterrupt of a second SIGINT that was lost where it was raised."""
        self._signals.notes_only = False
        if self._signals.repeated:
            raise KeyboardInterrupt

    def close(self) -> None:
        """Close what was opened, after everything that still reports to it."""
        super().close()
        self.store.close()
        self._signals.remove()


class LocalEvaluation(ReportingEvaluation):
    """An evaluation in one process."""

    def collected(self, items: list[pytest.Item]) -> None:
        """Count the selected runs, and open what is kept of tests."""
        selected = Counter(run.suite for run in run_ids(items))
        self.recorder.select(selected)
        self.gates.select(selected)
        self._open(self._of_tests())

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the first rollouts."""
        if not self.recorder.selected():
            return
        with preflight.usage_errors():
            self.store.begin(info.name for info, runs in self.recorder.selected_infos() if runs)
        rollouts = self._rollouts(ResultCache(self.suites, self.store.log, self.store.kept_runs()))
        runner = ItemRunner(
            self.config,
            rollouts,
            sections=self.sections,
            on_begin=self.run_starts,
            on_report=self.store.log.report,
        )
        self._run_with(runner, items)
        runner.coming(items)

    def _rollouts(self, cache: ResultCache) -> Rollouts:
        """Return where the runs come from that are not kept already."""
        pool = self._pool(self, cache, window=self.spec.batch_size)
        pool.import_when_idle(FIGURES)
        return pool

    def halt_runs(self, reason: str) -> None:
        """Start no further run."""
        if self.runner is not None:
            self.runner.rollouts.halt(reason)

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight."""
        if self.runner is not None:
            self.runner.rollouts.resize(window)
