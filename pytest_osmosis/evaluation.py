"""The evaluation within one pytest process: its suites, its rollouts, and whom it tells.

The controller checks everything and starts the embedded endpoint; whichever process runs items has
the rollouts. `plugin` calls this in the order of the session's life.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from osmosis_ai.secret import Redactor

from . import api_keys, options
from .distributed import processes
from .distributed.compat import WORKER_PACKAGES, is_controller, is_worker
from .distributed.heartbeat import end_with_parent
from .errors import ConfigurationError, NoRows
from .hookspecs import hooks_of
from .items import capture
from .items.collection import EmptyFile, EvalFile, RunItem, leave_out_of_cache
from .items.gates import take_named
from .items.protocol import needs_phases, run_item
from .items.redaction import MaskedWarnings
from .results import RolloutRecord, RunId, RunResult, SuiteInfo
from .rollouts.cached import ResultCache, StoreCache
from .rollouts.pool import RolloutPool
from .rollouts.prepare import endpoint_of, prepare, secrets_of
from .rollouts.rate_limit import SharedRateLimit
from .rollouts.suite import Suite
from .session import preflight
from .session.gates_plugin import GatesPlugin
from .session.signals import SignalHandlers, leave_to_controller
from .spec import EvalSpec, SessionSpec
from .storage.fingerprint import EvalFingerprint, fingerprint_of, sources_of

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint

    from .distributed.controller import Controller
    from .distributed.worker import Worker
    from .session.result_sink import ResultSink

EVALUATION = pytest.StashKey["Evaluation"]()


class Evaluation:
    """Everything of ours in one pytest process.

    `gathering` is there where results are reported, `rollouts` where items run; without xdist both
    are in one process, with it `controller` and `worker` stand between them.
    """

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        self.config = config
        self.spec = spec
        self.suites: dict[str, Suite] = {}
        self.gathering: ResultSink | None = None
        self.controller: Controller | None = None
        self.worker: Worker | None = None
        self.rollouts: RolloutPool | None = None
        models = [each.model for each in (spec.defaults, *spec.evals) if each is not None]
        self.redact = Redactor(secret for model in models for secret in secrets_of(model))
        config.pluginmanager.register(MaskedWarnings(self.redact), "osmosis-masked-warnings")
        self._phases = False
        self.interrupts = SignalHandlers(self._interrupted)
        self._endpoints: dict[str, EmbeddedEndpoint] = {}
        """By persona."""
        self.base_urls: Mapping[str, str] = {}
        self._no_rows: dict[Path, str] = {}
        self._end_routing: Callable[[], None] = lambda: None
        infos: Callable[[], Mapping[str, SuiteInfo]] = dict
        if not is_worker(config):
            from .session.recorder import Recorder
            from .session.result_sink import ResultSink

            recorder = Recorder(config, spec)
            self.gathering = ResultSink(spec, recorder, root=config.rootpath)
            infos = recorder.infos
        self.decisions = GatesPlugin(spec, suites=self.suites, infos=infos, key_of=key_of_item)
        if self.gathering is not None:
            self.gathering.recorder.decisions = self.decisions

    # ---- configuration

    def narrow_arguments(self) -> None:
        """Collect the data files: alone when the command line names them, else beside the tests.

        Explicit arguments (paths, node ids) stay what they are.
        """
        self._narrow_arguments()
        if not any(_below_any(str(spec.data), self.config.args) for spec in self.spec.evals):
            self.decisions.decide_on_marked()

    def _narrow_arguments(self) -> None:
        config = self.config
        if self.spec.deciding.gates and take_named(config):
            config.args[:] = list(dict.fromkeys(str(spec.data) for spec in self.spec.evals))
        if not self.spec.evals or config.args_source is config.ArgsSource.ARGS:
            return
        files = list(dict.fromkeys(str(spec.data) for spec in self.spec.evals))
        given = options.OptionReader(config)
        if given.on_command_line("data") or given("only") or self.spec.rescore:
            config.args[:] = files
        else:
            config.args.extend(file for file in files if not _below_any(file, config.args))

    # ---- session start

    def start(self) -> None:
        """Check all that options name, before anything is sent or any worker is started."""
        if is_worker(self.config):
            self._start_worker()
        elif not self.config.option.collectonly:
            preflight.check(self.config, self.spec)
        self._find_keys()
        for spec in self.spec.evals:
            self._prepare_named(spec)
        self._honour_limits()
        if self.gathering is None or self.config.option.collectonly:
            return
        for persona in preflight.personas(self.spec):
            self._endpoints[persona] = preflight.start_embedded(persona)
        self.base_urls = {name: endpoint.base_url for name, endpoint in self._endpoints.items()}
        if is_controller(self.config):
            from .distributed.controller import Controller

            self.controller = Controller(
                self.config,
                self.gathering,
                self.suites,
                worker_timeout_s=self.spec.worker_timeout_s,
                loaded=self._loaded(),
            )
            self.gathering.halt_runs = self.controller.halt
            self.gathering.resize_runs = self.controller.resize
        self._find_kept(self.suites.values())
        self._guard_report()
        self._find_baselines(self.gathering, self.suites.values())
        self._set_reports_up(self.gathering)
        self.interrupts.install()

    def _set_reports_up(self, gathering: ResultSink) -> None:
        """What is told while runs end, and of where they ran."""
        from .session import progress

        config, recorder, path = self.config, gathering.recorder, self.spec.trajectories
        preflight.check_trajectories(path)
        recorder.environment = preflight.environment(config, self.spec, redact=self.redact)
        counter = progress.ProgressCounter(
            recorder.selected, lambda left: min(self.spec.batch_size, left)
        )
        follow = self.decisions.follow(gathering.halt)

        def heard(run: RunResult) -> None:
            counter.ended(run)
            follow(run)

        recorder.on_first = heard
        progress.show(config, counter)

    def _start_worker(self) -> None:
        leave_to_controller()
        end_with_parent()
        from .distributed.worker import Worker

        self.worker = Worker(self.config)
        self.base_urls = self.worker.base_urls

    def _find_keys(self) -> None:
        """Put the models' keys into their specs."""
        try:
            key_variables = api_keys.key_variables(self.spec)
            if not self.config.option.collectonly:
                self.spec = api_keys.resolved(self.spec)
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from None
        self.spec = replace(self.spec, key_variables=key_variables)

    def _prepare_named(self, spec: EvalSpec) -> None:
        try:
            hooks, validate = hooks_of(self.config), self.worker is None
            if self.spec.rescore is not None:
                from .rollouts.rescore import prepare as prepare_recorded

                self.add(prepare_recorded(spec, self.spec, validate=validate, hooks=hooks))
                return
            self.add(prepare(spec, self.spec, validate=validate, hooks=hooks))
        except NoRows as error:
            self._no_rows[spec.data] = str(error)
            if self.gathering is not None:
                self.gathering.recorder.tell(str(error))
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from None

    def _honour_limits(self) -> None:
        """Have no more in flight than all agents together allow, where every one has a limit."""
        limits = [suite.agent.max_concurrent for suite in self.suites.values()]
        known = [limit for limit in limits if limit is not None]
        if limits and len(known) == len(limits) and sum(known) < self.spec.batch_size:
            self.spec = replace(self.spec, batch_size=sum(known))
            processes.limit_processes(self.config, sum(known))

    def add(self, suite: Suite) -> None:
        """A suite that items will be collected for."""
        self.suites[suite.spec.name] = suite
        if self.gathering is not None:
            self.gathering.recorder.declare(suite.info)

    # ---- collection

    def collector_for(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """The collector of a data file that an evaluation names."""
        if path in self._no_rows:
            return EmptyFile.from_parent(parent, path=path)
        suites = [s for s in self.suites.values() if s.spec.data == path and not s.spec.marked]
        return EvalFile.of(suites, parent, path) if suites else None

    def collected(self, items: list[pytest.Item]) -> None:
        """The items are known: tell how many there are, and what they are."""
        counts = Counter(key.suite for key in _keys(items))
        marked = [suite for suite in self.suites.values() if suite.spec.marked]
        if self.worker is not None:
            infos = [suite.info for suite in self.suites.values()]
            self.worker.introduce(infos, counts, self._identities(marked), self._loaded())
        elif self.gathering is not None:
            self.gathering.recorder.select(counts)
            leave_out_of_cache(self.config, items)
            if not self.config.option.collectonly:
                self._find_kept(marked)
                self._find_baselines(self.gathering, marked)

    def _find_kept(self, suites: Iterable[Suite]) -> None:
        """What earlier sessions kept of these suites; told in the next lines."""
        if self.gathering is not None:
            with preflight.usage_errors():
                self.gathering.keeper.open(self._identities(suites))
            self.gathering.keeper.transcribe(suite.spec.name for suite in suites)

    def _find_baselines(self, gathering: ResultSink, suites: Iterable[Suite]) -> None:
        """What these suites are compared with, and whether their gates suit them."""
        infos = [suite.info for suite in suites]
        with preflight.usage_errors():
            gathering.keeper.lines += self.decisions.begin(infos, gathering.keeper.places())

    def _guard_report(self) -> None:
        """No other session writes the same report meanwhile."""
        if self.gathering is not None and self.spec.output and self.spec.keeping.journal:
            with preflight.usage_errors():
                self.gathering.keeper.guard_report(self.spec.output)

    def _identities(self, suites: Iterable[Suite]) -> list[EvalFingerprint]:
        if not self.spec.keeping.journal or self.config.option.collectonly:
            return []
        roots, root = self.spec.roots, self.config.rootpath
        return [
            fingerprint_of(suite.spec, suite.info, suite.dataset, roots=roots, root=root)
            for suite in suites
        ]

    def _loaded(self) -> dict[str, dict[str, str]]:
        """Digests of the files that this process has loaded, by suite and name."""
        roots, root = self.spec.roots, self.config.rootpath
        return {
            name: {
                suite.spec.data.name: suite.info.digest,
                **sources_of(suite.spec, roots=roots, root=root),
            }
            for name, suite in self.suites.items()
        }

    def _cache(self, selected: Mapping[str, int]) -> ResultCache:
        """Runs are about to start: keep them, and know those that have been kept."""
        if self.worker is not None:
            places = self.worker.places
            return ResultCache(self.suites, lambda: places)
        assert self.gathering is not None
        with preflight.usage_errors():
            self.gathering.begin_keeping(selected)
        return StoreCache(self.suites, self.gathering.keeper)

    def plan(self) -> list[str]:
        """What is going to run, in a line a suite."""
        quiet = preflight.is_quiet(self.config)
        lines = [] if self.gathering is None else self.gathering.keeper.take_lines(quiet=quiet)
        if quiet and not self.config.option.collectonly:
            return lines
        return [*[_plan(suite.info) for suite in self.suites.values()], *lines]

    def header(self) -> list[str]:
        """The lines in the session's header."""
        lines = [_subject(suite.info) for suite in self.suites.values() if not suite.spec.marked]
        default = self.spec.defaults
        if default is not None and default.model.model:
            lines.append(self._throughput(default))
        lines += [
            f"osmosis: warning: the key in {name} is too short or too common a word to be masked "
            "where an answer quotes it"
            for name in self.redact.unmaskable
        ]
        if self.gathering is not None:
            lines += self.gathering.keeper.take_lines()
        return lines

    def _throughput(self, spec: EvalSpec) -> str:
        flight = f"{self.spec.batch_size} in flight"
        workers = getattr(self.config.option, "numprocesses", None)
        if workers:
            flight += f" over {workers} worker{'s' if workers > 1 else ''}"
        seed = "" if spec.model.seed is None else f", seed {spec.model.seed}"
        return f"osmosis: {spec.model.model} at {endpoint_of(spec.model)}, {flight}{seed}"

    # ---- running

    def begin(self, items: list[pytest.Item]) -> None:
        """The items are known: tell how many there are, and start the first rollouts."""
        counts = Counter(key.suite for key in _keys(items))
        if self.config.option.collectonly or not counts:
            return
        cache = self._cache(counts)
        self._end_routing = capture.route(self.config, self.redact)
        rollouts = self.rollouts = RolloutPool(
            self.suites,
            window=0 if self.worker is not None else self.spec.batch_size,
            pool_size=self.spec.batch_size,
            base_urls=self.base_urls,
            on_finished=self._run_ended,
            rate_limit=SharedRateLimit(self._paced),
            cache=cache,
            on_stuck=self._stuck,
        )
        self._phases = needs_phases(self.config, indifferent=WORKER_PACKAGES)
        if self.worker is not None:
            self.worker.serve(rollouts, cache, items, key_of_item)
        elif self.gathering is not None:
            self.gathering.halt_runs = rollouts.halt
            self.gathering.resize_runs = rollouts.resize
            self.gathering.supervisor.start()
            rollouts.coming(_keys(items))

    def run_item(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run and report an item of ours; leave every other to pytest."""
        if self.rollouts is None or not isinstance(item, RunItem):
            return None
        is_done = run_item(item, nextitem, self.rollouts, phases=self._phases, redact=self.redact)
        return is_done or None

    def _run_ended(self, key: RunId, finished: RolloutRecord) -> None:
        """Engine's thread: a run has ended."""
        suite = self.suites[key.suite]
        decided = not suite.spec.marked  # else a test's asserts are still to come
        if self.worker is not None:
            self.worker.ended(key, finished, decided=decided, redact=suite.redact)
        elif self.gathering is not None:
            self.gathering.run_here_ended(finished, decided=decided, redact=suite.redact)

    def _stuck(self, reason: str) -> None:
        """Watching thread: nothing more can be run in this process."""
        if self.worker is not None:
            self.worker.give_up(reason)
        elif self.gathering is not None:
            self.gathering.halt(reason)

    def _paced(self, kind: str, not_before_s: float) -> None:
        """Engine's thread: the endpoint said that it is too much, or that it bears it."""
        if self.worker is not None:
            self.worker.paced(kind, not_before_s)
        elif self.gathering is not None:
            self.gathering.paced(kind, not_before_s)

    # ---- the end

    def _interrupted(self, signal: str) -> None:
        """Main thread, in a signal handler: the session ends now."""
        if self.gathering is not None:
            self.gathering.recorder.interrupt(signal)

    def cancel(self) -> None:
        """The session was interrupted: start nothing, cancel what is in flight."""
        if self.controller is not None:
            self.controller.cancel()
        if self.rollouts is not None:
            self.rollouts.cancel()

    def close(self) -> None:
        """Cancel what is in flight and release everything; harmless when repeated."""
        rollouts, self.rollouts = self.rollouts, None
        if rollouts is not None:
            rollouts.close()  # a second interrupt ends the wait; the next call closes the rest
        self._end_routing()
        for role in (self.controller, self.worker, self.gathering):
            if role is not None:
                role.close()
        while self._endpoints:
            self._endpoints.popitem()[1].close()
        self.interrupts.remove()


def _keys(items: list[pytest.Item]) -> Iterator[RunId]:
    return (key for item in items if (key := key_of_item(item)) is not None)


def key_of_item(item: pytest.Item) -> RunId | None:
    """The run that an item stands for, if it is one of ours."""
    if isinstance(item, RunItem):
        return item.run_id
    callspec = getattr(item, "callspec", None)
    key = None if callspec is None else callspec.params.get("rollout")
    return key if isinstance(key, RunId) else None


def of(config: pytest.Config) -> Evaluation | None:
    """The session's evaluation, if there is one."""
    return config.stash.get(EVALUATION, None)


def _plan(info: SuiteInfo) -> str:
    functions = len(info.eval_fns)
    return (
        f"{info.name}: {_count(info.rows, 'row')} x {_count(info.n, 'run')} x "
        f"{_count(functions, 'eval function')} = {_count(info.total_runs, 'rollout')}"
    )


def _subject(info: SuiteInfo) -> str:
    return (
        f"osmosis: {info.agent} on {info.name} ({_count(info.rows, 'row')}, "
        f"sha256 {info.digest[:8]}…), {info.rows} x {info.n} = "
        f"{_count(info.total_runs, 'rollout')}, pass >= {info.pass_threshold:g}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _below_any(file: str, arguments: list[str]) -> bool:
    # realpath: unlike `resolve` it bears a loop of links, which is told where the file is read
    paths = [os.path.realpath(argument.partition("::")[0]) for argument in arguments]
    return any(Path(file).is_relative_to(path) for path in paths)
