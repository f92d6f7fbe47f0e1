"""The evaluation within one pytest process, chosen once by the part that the process has.

    Evaluation
    ├── ReportingEvaluation       checks, records, evaluates gates, writes reports
    │   ├── LocalEvaluation       and runs the items itself
    │   └── ControllerEvaluation  and has xdist's workers run them
    └── WorkerEvaluation          runs items, and sends what becomes of them

`plugin` calls it in the order of the session's life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from osmosis_ai.secret import Redactor

from . import api_keys
from .distributed import processes
from .distributed.compat import WORKER_PACKAGES, is_controller, is_worker
from .errors import NoRows
from .hookspecs import hooks_of
from .items.collection import EmptyFile, EvalFile, leave_out_of_cache
from .items.redaction import MaskedWarnings
from .items.runner import ItemRunner, run_id_of, run_ids
from .results import RunResult, SuiteInfo
from .rollouts.cached import ResultCache, StoreCache
from .rollouts.prepare import prepare, secrets_of
from .rollouts.suite import Suite
from .session import arguments, header, preflight
from .session.gates_plugin import GatesPlugin
from .session.signals import SignalHandlers, leave_to_controller
from .spec import EvalSpec, SessionSpec
from .storage.fingerprint import EvalFingerprint, fingerprint_of, sources_of

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint

    from .distributed.scheduler import WindowScheduling


EVALUATION = pytest.StashKey["Evaluation"]()


def of(config: pytest.Config) -> Evaluation | None:
    """Return the session's evaluation, if there is one."""
    return config.stash.get(EVALUATION, None)


def evaluation_for(config: pytest.Config, spec: SessionSpec) -> Evaluation:
    """Return the evaluation for the part that this process has."""
    if is_worker(config):
        return WorkerEvaluation(config, spec)
    if is_controller(config):
        return ControllerEvaluation(config, spec)
    return LocalEvaluation(config, spec)


class Evaluation:
    """What every process has: the suites, the gates that are collected, the secrets."""

    validates = True
    """Whether datasets are checked here; workers read what the controller has checked."""

    def __init__(
        self, config: pytest.Config, spec: SessionSpec, infos: Mapping[str, SuiteInfo]
    ) -> None:
        """`infos` are of all suites of the session, `suites` of those that this process has."""
        self.config = config
        self.spec = spec
        self.suites: dict[str, Suite] = {}
        self.runner: ItemRunner | None = None
        """There while items run in this process."""
        models = [each.model for each in (spec.defaults, *spec.evals) if each is not None]
        self.redact = Redactor(secret for model in models for secret in secrets_of(model))
        self.gates = GatesPlugin(spec, suites=self.suites, infos=lambda: infos, key_of=run_id_of)
        self._no_rows: dict[Path, str] = {}
        plugins = config.pluginmanager
        plugins.register(MaskedWarnings(self.redact), "osmosis-masked-warnings")
        if self.gates.gating is not None:
            plugins.register(self.gates.gating, "osmosis-gates")

    # ---- the session's life, as `plugin` calls it

    def narrow_arguments(self) -> None:
        """Set what pytest collects."""
        arguments.narrow(self.config, self.spec)
        files = [str(spec.data) for spec in self.spec.evals]
        if not any(arguments.is_below_any(file, self.config.args) for file in files):
            self.gates.decide_on_marked()

    def start(self) -> None:
        """Check all that options name, before anything is sent or any worker is started."""
        raise NotImplementedError

    def header(self) -> list[str]:
        """Return the lines of the session's header."""
        suites = self.suites.values()
        return list(header.header(self.config, self.spec, suites, self.redact.unmaskable))

    def plan(self) -> list[str]:
        """Return what is going to run, in a line a suite."""
        if preflight.is_quiet(self.config) and not self.config.option.collectonly:
            return []
        return [header.plan(suite.info) for suite in self.suites.values()]

    def worker_starts(self, node: Any) -> None:
        """Give a worker that is about to start what it must know."""

    def make_scheduler(self) -> WindowScheduling | None:
        """Return the scheduler of xdist's controller."""
        return None

    def worker_crashed(self, report: pytest.TestReport, node: Any) -> None:
        """Put the result of a run that ended its worker into the report."""

    def worker_ended(self, node: Any) -> None:
        """Note that a worker has ended."""

    def collector_for(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return the collector of a data file that an evaluation names."""
        if path in self._no_rows:
            return EmptyFile.from_parent(parent, path=path)
        suites = [s for s in self.suites.values() if s.spec.data == path and not s.spec.marked]
        return EvalFile.of(suites, parent, path) if suites else None

    def collected(self, items: list[pytest.Item]) -> None:
        """Note the items that were collected and selected."""
        raise NotImplementedError

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the first rollouts of these items."""
        raise NotImplementedError

    def run_item(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run and report the item of a run; leave every other to pytest."""
        return None if self.runner is None else self.runner.run(item, nextitem)

    def cancel(self) -> None:
        """Start nothing more, and cancel what is in flight: the session was interrupted."""
        if self.runner is not None:
            self.runner.rollouts.cancel()

    def close(self) -> None:
        """Cancel what is in flight and release everything; harmless when repeated."""
        runner, self.runner = self.runner, None
        if runner is not None:
            runner.close()  # a second interrupt ends the wait; the next call closes the rest

    # ---- suites

    def add(self, suite: Suite) -> None:
        """Add a suite that items will be collected for."""
        self.suites[suite.spec.name] = suite

    def no_rows(self, path: Path, reason: str) -> None:
        """Note a data file of which no row is selected."""
        self._no_rows[path] = reason

    def _prepare(self) -> None:
        """Find keys, read rows and import code for the evaluations that options name."""
        with preflight.usage_errors():
            key_variables = api_keys.key_variables(self.spec)
            if not self.config.option.collectonly:
                self.spec = api_keys.resolved(self.spec)
        self.spec = replace(self.spec, key_variables=key_variables)
        for spec in self.spec.evals:
            with preflight.usage_errors():
                self._prepare_named(spec)
        self._honour_limits()

    def _prepare_named(self, spec: EvalSpec) -> None:
        hooks = hooks_of(self.config)
        try:
            if self.spec.rescore is None:
                self.add(prepare(spec, self.spec, validate=self.validates, hooks=hooks))
                return
            from .rollouts.rescore import prepare as prepare_recorded

            self.add(prepare_recorded(spec, self.spec, validate=self.validates, hooks=hooks))
        except NoRows as error:
            self.no_rows(spec.data, str(error))

    def _honour_limits(self) -> None:
        """Have no more in flight than all agents together allow, where every one has a limit."""
        limits = [suite.agent.max_concurrent for suite in self.suites.values()]
        known = [limit for limit in limits if limit is not None]
        if limits and len(known) == len(limits) and sum(known) < self.spec.batch_size:
            self.spec = replace(self.spec, batch_size=sum(known))
            processes.limit_processes(self.config, sum(known))

    def _marked(self) -> list[Suite]:
        return [suite for suite in self.suites.values() if suite.spec.marked]

    def _identities(self, suites: Iterable[Suite]) -> list[EvalFingerprint]:
        if not self.spec.keeping.journal or self.config.option.collectonly:
            return []
        roots, root = self.spec.roots, self.config.rootpath
        return [
            fingerprint_of(suite.spec, suite.info, suite.dataset, roots=roots, root=root)
            for suite in suites
        ]

    def _loaded(self) -> dict[str, dict[str, str]]:
        """Return digests of the files that this process has loaded, by suite and name."""
        roots, root = self.spec.roots, self.config.rootpath
        return {
            name: {
                suite.spec.data.name: suite.info.digest,
                **sources_of(suite.spec, roots=roots, root=root),
            }
            for name, suite in self.suites.items()
        }


class ReportingEvaluation(Evaluation):
    """The evaluation where results come together, in exactly one process of a session."""

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        from .session.progress import ProgressCounter
        from .session.recorder import Recorder
        from .session.result_sink import ResultSink
        from .storage.store import RunStore

        infos: dict[str, SuiteInfo] = {}
        super().__init__(config, spec, infos)
        self.store = RunStore(
            spec.keeping,
            root=config.rootpath,
            answers=spec.answers,
            transcribes=spec.trajectories is not None,
            on_failure=self._halt,
        )
        self.recorder = Recorder(
            config, spec, infos, self.gates, self.store, on_first=self._first_heard
        )
        self.sink = ResultSink(spec, self.recorder, self.store, runs=self)
        self.base_urls: Mapping[str, str] = {}
        """Where the embedded endpoint listens, by persona."""
        self._endpoints: dict[str, EmbeddedEndpoint] = {}
        self._signals = SignalHandlers(self.recorder.interrupt)
        self._counter = ProgressCounter(
            self.recorder.selected, lambda left: min(self.spec.batch_size, left)
        )
        self._follow = self.gates.follow(self._halt)
        config.pluginmanager.register(self.recorder, "osmosis-recorder")
        config.pluginmanager.register(self.gates, "osmosis-decisions")

    def start(self) -> None:
        """Check outputs, keys, rows and code, and open what is kept of earlier sessions."""
        if not self.config.option.collectonly:
            preflight.check(self.config, self.spec)
        self._prepare()
        if self.config.option.collectonly:
            return
        for persona in preflight.personas(self.spec):
            self._endpoints[persona] = preflight.start_embedded(persona)
        self.base_urls = {name: endpoint.base_url for name, endpoint in self._endpoints.items()}
        self._open(self.suites.values())
        if self.spec.output and self.spec.keeping.journal:
            with preflight.usage_errors():
                self.store.guard_report(self.spec.output)
        self._begin_reports()
        self._signals.install()

    def _open(self, suites: Iterable[Suite]) -> None:
        """Open what earlier sessions kept of these suites, and find what they are compared with."""
        infos = [suite.info for suite in suites]
        with preflight.usage_errors():
            self.store.open(self._identities(suites))
            self.store.transcribe(suite.spec.name for suite in suites)
            self.store.lines += self.gates.begin(infos, self.store.places())

    def _begin_reports(self) -> None:
        from .session import progress

        preflight.check_trajectories(self.spec.trajectories)
        self.recorder.begin(preflight.environment(self.config, self.spec, redact=self.redact))
        progress.show(self.config, self._counter)

    def _first_heard(self, run: RunResult) -> None:
        """Count a run, and stop when no gate is open; from any thread."""
        self._counter.ended(run)
        self._follow(run)

    def _halt(self, reason: str) -> None:
        self.sink.halt(reason)

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
        return [*super().header(), *self.store.take_lines()]

    def plan(self) -> list[str]:
        """Return what is going to run, and what was found of earlier sessions."""
        return [*super().plan(), *self.store.take_lines(quiet=preflight.is_quiet(self.config))]

    def close(self) -> None:
        """Close what was opened, after everything that still reports to it."""
        super().close()
        self.sink.close()
        while self._endpoints:
            self._endpoints.popitem()[1].close()
        self._signals.remove()


class LocalEvaluation(ReportingEvaluation):
    """An evaluation in one process."""

    def collected(self, items: list[pytest.Item]) -> None:
        """Count the selected runs, and open what is kept of marked functions."""
        self.recorder.select(Counter(run.suite for run in run_ids(items)))
        leave_out_of_cache(self.config, items)
        if not self.config.option.collectonly:
            self._open(self._marked())

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the first rollouts."""
        counts = Counter(run.suite for run in run_ids(items))
        if self.config.option.collectonly or not counts:
            return
        with preflight.usage_errors():
            self.sink.begin_keeping(counts)
        self.runner = ItemRunner(
            self.config,
            self.spec,
            self.suites,
            self.sink,
            window=self.spec.batch_size,
            base_urls=self.base_urls,
            cache=StoreCache(self.suites, self.store),
            redact=self.redact,
            indifferent=WORKER_PACKAGES,
        )
        self.sink.supervisor.start()
        self.runner.rollouts.coming(run_ids(items))

    def halt_runs(self, reason: str) -> None:
        """Start no further run."""
        if self.runner is not None:
            self.runner.rollouts.halt(reason)

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight."""
        if self.runner is not None:
            self.runner.rollouts.resize(window)


class ControllerEvaluation(ReportingEvaluation):
    """An evaluation in xdist's controller: it collects and runs no item."""

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        from .distributed.controller import Controller

        super().__init__(config, spec)
        self._controller = Controller(
            config,
            self.sink,
            self.gates,
            self.suites,
            worker_timeout_s=spec.worker_timeout_s,
        )

    def start(self) -> None:
        """Check everything, and give workers the digests of what was checked."""
        super().start()
        self._controller.compare_with(self._loaded())

    def worker_starts(self, node: Any) -> None:
        """Give a worker its channel and what it must know."""
        self._controller.introduce(node, self.base_urls)

    def make_scheduler(self) -> WindowScheduling:
        """Return the scheduler that keeps every worker's window full."""
        return self._controller.make_scheduler(self.spec.batch_size)

    def worker_crashed(self, report: pytest.TestReport, node: Any) -> None:
        """Put the result of a run that ended its worker into the report."""
        self._controller.blame(report, node)

    def worker_ended(self, node: Any) -> None:
        """Watch a worker no longer."""
        self._controller.worker_down(node)

    def collected(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers collect."""

    def begin(self, items: list[pytest.Item]) -> None:
        """Do nothing: workers start rollouts."""

    def halt_runs(self, reason: str) -> None:
        """Start no further run in any worker."""
        self._controller.halt(reason)

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight over all workers."""
        self._controller.resize(window)

    def cancel(self) -> None:
        """Have the workers cancel what they have in flight, and end."""
        self._controller.cancel()

    def close(self) -> None:
        """Stop the watchdog, then close the rest."""
        self._controller.close()
        super().close()


class WorkerEvaluation(Evaluation):
    """An evaluation in one of xdist's workers."""

    validates = False

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        from .distributed.worker import Worker

        super().__init__(config, spec, {})
        self._worker = Worker(config)

    def start(self) -> None:
        """Read rows and import code; the controller has checked them."""
        leave_to_controller()
        self._worker.start()
        self._prepare()

    def plan(self) -> list[str]:
        """Return nothing: the controller prints it."""
        return []

    def collected(self, items: list[pytest.Item]) -> None:
        """Send the controller what was collected."""
        infos = [suite.info for suite in self.suites.values()]
        counts = Counter(run.suite for run in run_ids(items))
        self._worker.introduce(infos, counts, self._identities(self._marked()), self._loaded())

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the rollouts that the controller says are coming."""
        if self.config.option.collectonly or not any(run_ids(items)):
            return
        places = self._worker.places
        cache = ResultCache(self.suites, lambda: places)
        self.runner = ItemRunner(
            self.config,
            self.spec,
            self.suites,
            self._worker,
            window=0,
            base_urls=self._worker.base_urls,
            cache=cache,
            redact=self.redact,
            indifferent=WORKER_PACKAGES,
        )
        self._worker.serve(self.runner.rollouts, cache, items, run_id_of)

    def close(self) -> None:
        """Cancel what is in flight, and send nothing more."""
        super().close()
        self._worker.close()
