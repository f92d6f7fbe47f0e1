"""The evaluation within one pytest process: its suites, its rollouts, and whom it tells.

The controller checks everything and starts the embedded endpoint; whichever process runs items has
the rollouts. `plugin` calls this in the order of the session's life.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import atomic, options, output, schedule
from .collection import EmptyFile, EvalFile, RunItem
from .preparation import NoRows, NotUsable, endpoint_of, key_of, prepare
from .recorder import REPORT_FIELD, Recorder
from .results import RunResult, SuiteInfo
from .rollouts import Rollouts, RunKey
from .running import needs_phases, report_without_item
from .spec import EvalSpec, SessionSpec
from .suite import Suite

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint

EVALUATION = pytest.StashKey["Evaluation"]()


class Evaluation:
    """Everything of ours in one pytest process."""

    def __init__(self, config: pytest.Config, spec: SessionSpec) -> None:
        self.config = config
        self.spec = spec
        self.suites: dict[str, Suite] = {}
        self.rollouts: Rollouts | None = None
        self.recorder: Recorder | None = None
        self.phases = False
        self._endpoint: EmbeddedEndpoint | None = None
        self._base_urls: dict[str, str] = {}
        self._worker: schedule.WorkerLink | None = None
        self._controller: schedule.ControllerLink | None = None
        self._scheduling: schedule.WindowScheduling | None = None
        self._indices: dict[RunKey, int] = {}
        self._no_rows: dict[Path, str] = {}
        self._end_routing: Callable[[], None] = lambda: None

    # ---- configuration

    @property
    def is_worker(self) -> bool:
        """Whether an xdist controller is in charge."""
        return schedule.is_worker(self.config)

    @property
    def distributes(self) -> bool:
        """Whether this is an xdist controller, which runs no item itself."""
        return self.config.pluginmanager.hasplugin("dsession")

    def narrow_arguments(self) -> None:
        """Collect the data files: alone when the command line names them, else beside the tests.

        Explicit arguments (paths, node ids) stay what they are.
        """
        config = self.config
        if not self.spec.evals or config.args_source is config.ArgsSource.ARGS:
            return
        files = [str(spec.data) for spec in self.spec.evals]
        given = options.Given(config)
        if given.on_command_line("data") or given("only"):
            config.args[:] = files
        else:
            config.args.extend(file for file in files if not _below_any(file, config.args))

    # ---- session start

    def start(self) -> None:
        """Check all that options name, before anything is sent or any worker is started."""
        if self.is_worker:
            self._start_worker()
        else:
            self._check_outputs()
        for spec in self.spec.evals:
            self._prepare_named(spec)
        if self.is_worker or self.config.option.collectonly:
            return
        self._check_conflict()
        self._check_key()
        self._start_embedded()

    def _prepare_named(self, spec: EvalSpec) -> None:
        try:
            self.add(prepare(spec, self.spec, validate=not self.is_worker))
        except NoRows as error:
            self._no_rows[spec.data] = str(error)
            if self.recorder is not None:
                self.recorder.tell(str(error))
        except NotUsable as error:
            raise pytest.UsageError(str(error)) from None

    def add(self, suite: Suite) -> None:
        """A suite that items will be collected for."""
        self.suites[suite.spec.name] = suite
        if self.recorder is not None:
            self.recorder.declare(suite.info)

    def _check_outputs(self) -> None:
        output = self.spec.output
        if output is None or self.config.option.collectonly:
            return
        try:
            atomic.check_writable(output)
        except OSError as error:
            reason = error.strerror or str(error)
            raise pytest.UsageError(
                f"--osmosis-output {str(output)!r}: cannot be written: {reason}"
            ) from None

    def _check_conflict(self) -> None:
        from osmosis_ai._conflict import conflicting_distribution

        sentence = conflicting_distribution()
        if sentence is not None:
            raise pytest.UsageError(sentence)

    def _check_key(self) -> None:
        for spec in self.spec.evals or [self.spec.defaults]:
            if spec is None or not spec.model.model:
                continue
            try:
                key_of(spec.model)
            except NotUsable as error:
                raise pytest.UsageError(str(error)) from None

    def _start_embedded(self) -> None:
        default = self.spec.defaults
        persona = default.model.persona if default is not None else None
        if persona is None:
            return
        from osmosis_ai.embedded import start_embedded

        try:
            self._endpoint = start_embedded(persona)
        except ValueError as error:
            raise pytest.UsageError(f"--osmosis-model: {error}") from None
        self._base_urls[persona] = self._endpoint.base_url

    # ---- xdist

    def _start_worker(self) -> None:
        given = json.loads(self.config.workerinput[schedule.INPUT])  # type: ignore[attr-defined]
        self._base_urls = given["base_urls"]
        self._worker = schedule.WorkerLink(self.config)

    def introduce(self, node: Any) -> None:
        """Controller: what a new worker must know."""
        if self._controller is None:
            self._controller = schedule.ControllerLink(self._from_worker)
        self._controller.open(node, json.dumps({"base_urls": self._base_urls}))

    def make_scheduler(self) -> schedule.WindowScheduling:
        """Controller: the scheduler that keeps every worker's window full."""
        assert self._controller is not None and self.recorder is not None
        self._scheduling = schedule.WindowScheduling(
            self.config, batch_size=self.spec.batch_size, channels=self._controller.channels
        )
        self._scheduling.on_unreported = self._report_for_worker
        return self._scheduling

    def _report_for_worker(self, nodeid: str, text: str) -> None:
        """Controller: a run had finished in a worker that died before it could report it."""
        result = RunResult.from_json(text)
        assert self.recorder is not None
        report = report_without_item(nodeid, result, self.recorder.threshold_of(result.suite))
        self.config.hook.pytest_runtest_logreport(report=report)

    def blame(self, report: pytest.TestReport, worker: str) -> None:
        """Controller: a worker died of this item's run; its report tells it as a result."""
        found = self._run_named(report.nodeid)
        if found is None:
            return
        suite, position, run_index = found
        result = suite.lost(
            position,
            run_index,
            error=f"the worker process {worker} died during this run",
            error_type="worker_lost",
        )
        report.when = "setup"  # an error, not a failure
        report.location = (report.nodeid.partition("::")[0], None, report.nodeid.partition("::")[2])
        report.longrepr = f"worker lost: {result.error}"
        setattr(report, REPORT_FIELD, result.to_json())

    def _run_named(self, nodeid: str) -> tuple[Suite, int, int] | None:
        """The run of a data file's suite that a node id names."""
        path, _, name = nodeid.partition("::")
        row, _, run = name.rpartition("[run-")
        for suite in self.suites.values():
            if suite.spec.data == (self.config.rootpath / path).resolve():
                for position in range(len(suite.dataset)):
                    if suite.dataset.row_name(position) == row:
                        return suite, position, int(run.rstrip("]"))
        return None

    def _from_worker(self, node: Any, message: tuple[Any, ...]) -> None:
        """Controller, receiver thread: what a worker told."""
        kind, *values = message
        recorder, scheduling = self.recorder, self._scheduling
        assert recorder is not None
        if kind == "finished":
            if values[1]:
                recorder.note(RunResult.from_json(values[1]))
            if scheduling is not None:
                scheduling.note_finished(node, *values)
        elif kind == "suites":
            for text in values[0]:
                recorder.declare(SuiteInfo.from_json(text))
        elif kind == "selected":
            recorder.select(values[0])
        elif kind == "halt":
            recorder.halt(values[0])
            if scheduling is not None:
                scheduling.halt(values[0])

    # ---- collection

    def collector_for(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """The collector of a data file that an evaluation names."""
        if path in self._no_rows:
            return EmptyFile.from_parent(parent, path=path)
        for suite in self.suites.values():
            if suite.spec.data == path and not suite.spec.marked:
                return EvalFile.of(suite, parent, path)
        return None

    def plan(self) -> list[str]:
        """What is going to run, in a line a suite."""
        return [_plan(suite.info) for suite in self.suites.values()]

    def header(self) -> list[str]:
        """The lines in the session's header."""
        lines = [_subject(suite.info) for suite in self.suites.values() if not suite.spec.marked]
        default = self.spec.defaults
        if default is not None and default.model.model:
            lines.append(self._throughput(default))
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
        counts = Counter(key.suite for key in self._keys(items))
        if self._worker is not None:
            self._worker.send("suites", [suite.info.to_json() for suite in self.suites.values()])
            self._worker.send("selected", dict(counts))
        elif self.recorder is not None:
            self.recorder.select(dict(counts))
        if self.config.option.collectonly or not counts:
            return
        self.phases = needs_phases(self.config)
        self._end_routing = output.route(self.config)
        self.rollouts = Rollouts(
            self.suites,
            window=0 if self._worker is not None else self.spec.batch_size,
            base_urls=self._base_urls,
            on_finished=self._finished_ahead,
        )
        if self._worker is None:
            self.rollouts.coming(self._keys(items))
        else:
            self._listen(self._worker, items)

    def _listen(self, worker: schedule.WorkerLink, items: list[pytest.Item]) -> None:
        rollouts = self.rollouts
        assert rollouts is not None
        self._indices = {
            key: index for index, item in enumerate(items) if (key := key_of_item(item)) is not None
        }

        def coming(indices: list[int]) -> None:
            keys = (key_of_item(items[index]) for index in indices)
            rollouts.coming([key for key in keys if key is not None])

        worker.listen({"window": rollouts.resize, "coming": coming, "halt": rollouts.halt})

    def _keys(self, items: list[pytest.Item]) -> Iterator[RunKey]:
        return (key for item in items if (key := key_of_item(item)) is not None)

    def _finished_ahead(self, key: RunKey, result: RunResult) -> None:
        """Engine's thread: a run has ended."""
        whole = not self.suites[key.suite].spec.marked  # a marked test's asserts are still to come
        if self.recorder is not None:
            if whole:
                self.recorder.note(result)
            if result.fatal:
                self.recorder.halt(result.error or "")
        elif self._worker is not None:
            text = result.to_json() if whole else ""
            self._worker.send("finished", self._indices[key], text)
            if result.fatal:
                self._worker.send("halt", result.error or "")

    # ---- the end

    def close(self) -> None:
        """Cancel what is in flight and release everything; harmless when repeated."""
        if self.rollouts is not None:
            self.rollouts.close()
            self.rollouts = None
            self._end_routing()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None


def key_of_item(item: pytest.Item) -> RunKey | None:
    """The run that an item stands for, if it is one of ours."""
    if isinstance(item, RunItem):
        return item.key
    callspec = getattr(item, "callspec", None)
    key = None if callspec is None else callspec.params.get("rollout")
    return key if isinstance(key, RunKey) else None


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
    return any(Path(file).is_relative_to(Path(argument).resolve()) for argument in arguments)
