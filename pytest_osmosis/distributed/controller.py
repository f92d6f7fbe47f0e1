"""The xdist controller's part: starts, feeds and watches workers, and hands on their results.

Receives what workers send over their channels. Collects and runs no item.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple
from importlib import import_module
from typing import Any

import pytest

from .. import compat
from ..items.protocol import observe, properties
from ..run_result import DECIDED, REPORT_FIELD, SINGLE_FIELD, RunId, RunResult, SuiteInfo
from ..session.header import plan
from ..session.preflight import is_quiet, usage_errors, warn
from ..session.reporting_evaluation import FIGURES, ReportingEvaluation
from ..session.seams import Feature
from ..session.signals import interrupts_held
from ..spec import SessionSpec
from ..storage.fingerprint import EvalFingerprint
from ..storage.run_log import RunFolder
from ..storage.source_digest import differing
from . import messages
from .heartbeat import Watch
from .processes import limit_processes
from .scheduler import CachedResult, WindowScheduling


class ControllerEvaluation(ReportingEvaluation):
    """An evaluation in xdist's controller; what the scheduler asks and reports to.

    A pytest plugin too: xdist lets workers end what they have in flight before a session stops.
    """

    def __init__(
        self, config: pytest.Config, spec: SessionSpec, features: Sequence[Feature]
    ) -> None:
        super().__init__(config, spec, features)
        self._channels: dict[str, Any] = {}
        """Ends of the channels to workers, by the ids of their gateways."""
        self._scheduling: WindowScheduling | None = None
        self._watch = Watch(silence_s=spec.worker_timeout_s)
        self._pids: dict[Any, int] = {}
        self._files: dict[str, Mapping[str, str]] = {}
        """Digests of the files that workers must load too, by suite and name."""
        self._differs: str | None = None
        """What a worker has loaded that is not what the session began with."""
        self._refused: str | None = None
        """What a worker cannot begin for."""
        self._items: list[RunId | None] = []
        """The runs of the items, in their order."""
        self._runs: dict[str, RunId] = {}
        """By node id, once all workers have collected."""
        self._of_workers: dict[str, EvalFingerprint] = {}
        """Fingerprints of tests, which only workers collect."""
        self._session: pytest.Session | None = None
        self._starting = ExitStack()
        """What is to be undone when the workers have been started."""
        self._is_cancelled = False
        self._sent: dict[RunId, RunResult] = {}
        """Results that workers have sent ahead of their reports."""

    def plugins(self) -> dict[str, object]:
        """Return what has hooks of pytest: itself too."""
        return {**super().plugins(), "osmosis-controller": self}

    def start(self) -> None:
        """Check everything, and note what workers must load too."""
        super().start()
        self._files = {**self._loaded()}

    def _honour_limits(self) -> None:
        super()._honour_limits()
        limit_processes(self.config, self.spec.batch_size)

    # ---- hooks

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None, object, object]:
        """Take the session, which pytest and its plugins stop by its attributes."""
        self._session = session
        with self._starting:
            return (yield)

    def pytest_xdist_setupnodes(self) -> None:
        """Let Ctrl-C wait until every worker has been started."""
        self._starting.enter_context(interrupts_held())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, object, object]:
        """Start and finish the item of a report that stands for both.

        Cancel what is in flight once this report stops the session, as with `-x`.
        """
        hook, names = self.config.hook, {"nodeid": report.nodeid, "location": report.location}
        is_single = report.__dict__.pop(SINGLE_FIELD, False)
        if is_single:
            hook.pytest_runtest_logstart(**names)
        result = yield
        if is_single:
            hook.pytest_runtest_logfinish(**names)
        session = self._session
        if session is not None and (session.shouldfail or session.shouldstop):
            self.cancel()
        return result

    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker that is about to start its channel and what it must know."""
        debug_dir = self.spec.debug_dir
        given = {
            "base_urls": dict(self.base_urls),
            "places": _plain(self.store.places()),
            "debug_dir": None if debug_dir is None else str(debug_dir),
        }
        channel = node.gateway.newchannel()
        node.workerinput |= {messages.INPUT: json.dumps(given), messages.CHANNEL: channel}
        self._channels[node.gateway.id] = channel
        channel.setcallback(lambda message: self._receive(node, message))

    def _broadcast(self, kind: str, value: Any, *, but: Any = None) -> None:
        """Send to all workers, or to all but one."""
        for worker, channel in self._channels.items():
            if but is None or worker != but.gateway.id:
                messages.send(channel, kind, value)

    @pytest.hookimpl(wrapper=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> Generator[None, Any, Any]:
        """Return the scheduler that keeps every worker's window full, in place of any other.

        No other opens what is kept, or tells workers what to run ahead.
        """
        found = yield
        if config.getvalue("dist") not in ("load", "worksteal"):
            return found
        kind = type(found)
        if kind.__module__.partition(".")[0] != "xdist":
            warn(
                config,
                f"{kind.__module__}.{kind.__name__}, which pytest_xdist_make_scheduler gives, is "
                "not used: pytest-osmosis feeds the workers of this session itself, so that "
                "--batch-size rollouts are in flight",
            )
        self._scheduling = WindowScheduling(
            config, self, batch_size=self.spec.batch_size, channels=self._channels
        )
        return self._scheduling

    def pytest_handlecrashitem(self, report: pytest.TestReport) -> None:
        """Put the result of a run that ended its worker into the report."""
        found = self._runs.get(report.nodeid)
        if found is None:
            return
        node: Any = report.node
        silent_s = self._watch.ended.get(self._pids.get(node, -1))
        how = "died" if silent_s is None else f"was frozen for {silent_s:.0f} s and was ended"
        error = f"the worker process {node.gateway.id} {how} during this run"
        line = None
        if (suite := self.suites.get(found.suite)) is not None:
            line = suite.dataset.line(found.row_index)
            result = suite.lost(found, error=error, error_type="worker_lost")
        else:  # a test's, which only workers have
            run = found.suite, found.row_index, found.run_index
            result = RunResult(*run, error=error, error_type="worker_lost")
        path, _, name = report.nodeid.partition("::")
        report.when = "setup"  # an error, not a failure
        report.location = (path, None if line is None else line - 1, name)
        report.longrepr = f"worker lost: {result.error}"
        report.user_properties = properties(result)
        if self.gates.is_gated(found.suite):
            observe(report, result, 0.0)
        compat.properties_in_junit(self.config, report)
        setattr(report, REPORT_FIELD, result)
        self.store.log.report(found, result)

    @pytest.hookimpl(tryfirst=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Forget a worker, and cancel what others do if it has stopped the session.

        A worker that cannot begin ends a session in which nothing has begun, as here.
        """
        if self._refused is not None and not self._runs:
            raise pytest.UsageError(self._refused)
        if node in self._pids:
            self._watch.gone(self._pids[node])
        self.store.flush()  # others may report what it has kept
        compat.forget_in_junit(self.config, node)
        output = getattr(node, "workeroutput", None) or {}
        if output.get("shouldfail") or output.get("shouldstop"):
            self.cancel()

    # ---- what the scheduler asks and reports, in the main thread

    def begin_items(self, nodeids: Sequence[str]) -> None:
        """Open what is kept of the suites, before any item is given out."""
        store = self.store
        if self._differs is not None:
            raise pytest.UsageError(self._differs)
        pairs = zip(nodeids, self._items, strict=True)
        self._runs = {nodeid: run for nodeid, run in pairs if run is not None}
        selected = Counter(run.suite for run in self._runs.values())
        self.recorder.select(selected)
        self.gates.select(selected)
        with usage_errors():
            store.open(list(self._of_workers.values()))
            store.add(self.recorder.infos())
            infos = [identity.info for identity in self._of_workers.values()]
            store.lines += self.gates.begin(infos, store.folder_of)
            store.begin(selected)
        self._broadcast(messages.PLACES, _plain(store.places()))
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        for line in [*self._partial_plans(), *store.take_lines(quiet=is_quiet(self.config))]:
            if terminal is not None:
                terminal.write_line(line)

    def _partial_plans(self) -> Iterator[str]:
        """Yield how much runs of each suite of which a part is selected."""
        for info, selected in self.recorder.selected_infos():
            if selected < info.total_runs and not is_quiet(self.config):
                yield plan(info, selected)

    def followers(self, nodeids: Sequence[str]) -> Mapping[int, Sequence[int]]:
        """Return, by the place of an item, those of the others that have the same rollout."""
        infos = self.recorder.infos()
        found: dict[RunId, list[int]] = {}
        for index, nodeid in enumerate(nodeids):
            run = self._runs.get(nodeid)
            if run is not None and (leader := infos[run.suite].shares) is not None:
                found.setdefault(run._replace(suite=leader), []).append(index)
        return {first: others for first, *others in found.values() if others}

    def other_items(self, worker: str) -> None:
        """Halt: the worker's files are not those of the session."""
        self.halt(
            f"worker {worker}, in the place of one that was lost, collected other "
            "items: have files changed? Nothing more is started; run the same command again"
        )

    def is_reported(self, nodeid: str) -> bool:
        """Return whether the item's report has come."""
        return self.recorder.has_report(nodeid)

    def cached(self, nodeid: str) -> CachedResult | None:
        """Return the run of an item that an earlier session kept."""
        store = self.store
        if not store.resumes:
            return None
        found = self._runs.get(nodeid)
        kept = None if found is None else store.find(found)
        if found is None or kept is None:
            return None
        return CachedResult(kept.to_json(), found.suite not in self._of_workers)

    # ---- what the session asks

    def halt_runs(self, reason: str) -> None:
        """Start nothing more in any worker."""
        if self._scheduling is not None:
            self._scheduling.halt(reason, keep_items=reason == DECIDED)

    def resize_runs(self, window: int) -> None:
        """Set how many rollouts may be in flight over all workers."""
        if self._scheduling is not None:
            self._scheduling.resize(window)

    def cancel(self) -> None:
        """End the session now: workers cancel what they have in flight, and end."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        self._broadcast(messages.CANCEL, None)
        if self._scheduling is not None:
            self._scheduling.shut_down()

    def close(self) -> None:
        """Stop the watchdog, then close the rest."""
        self._watch.stop()
        super().close()

    # ---- what workers send, in xdist's receiver thread

    def _receive(self, node: Any, message: tuple[Any, ...]) -> None:
        kind, *values = message
        scheduling = self._scheduling
        if kind == messages.FINISHED:
            self._runs_ended(node, *values)
        elif kind == messages.BEGUN:
            self.run_starts()
            for module in FIGURES:
                import_module(module)
        elif kind == messages.GAVE_UP:
            if scheduling is not None:
                scheduling.excuse(node)
        elif kind == messages.REFUSED:
            self._refused = f"worker {node.gateway.id}: {values[0]}"
        elif kind == messages.PROBLEM:
            self.halt(values[0])
        elif kind == messages.ALIVE:
            self._pids[node] = values[0]
            self._watch.note_beat(values[0])
        elif kind == messages.PACE:
            self.paced(*values)
            if values[1] > 0:
                self._broadcast(messages.HOLD, values[1], but=node)
        elif kind == messages.COLLECTED:
            self._introduced(node, json.loads(values[0]))
        else:
            self.halt(f"worker {node.gateway.id} has sent {kind!r}, which is no known message")

    def _runs_ended(self, node: Any, ended: Sequence[tuple[int, str, tuple[int, int]]]) -> None:
        infos, runs = self.recorder.infos(), {}
        for index, text, place in ended:
            result = RunResult.from_json(text)
            run = result.run_id
            self._sent[run] = result
            self.store.log.note(run, node.gateway.id, *place)
            self.received(run, result)
            runs[index] = CachedResult(text, decided=not infos[run.suite].scored_by_test)
        if self._scheduling is not None:
            self._scheduling.note_finished(node, runs)

    def _take_sent(self, run: RunId) -> RunResult:
        return self._sent.pop(run)

    def _introduced(self, node: Any, collected: Mapping[str, Any]) -> None:
        """Note what a worker sends before it runs anything; the others have collected the same."""
        self._compare(node, collected["loaded"])
        if self._items:
            return
        infos = [SuiteInfo.from_dict(info) for info in collected["suites"]]
        self._items = [
            None if run is None else RunId(infos[run[0]].name, run[1], run[2])
            for run in collected["runs"]
        ]
        for info in infos:
            self.recorder.declare(info)
        found = map(EvalFingerprint.from_json, collected["identities"])
        self._of_workers = {identity.info.name: identity for identity in found}

    def _compare(self, node: Any, loaded: Mapping[str, Mapping[str, str]]) -> None:
        """Halt when a worker has loaded other files: runs of different versions are not mixed."""
        for suite, files in loaded.items():
            known = self._files.setdefault(suite, files)
            changed = differing(known, files)
            if changed and self._differs is None:
                self._differs = (
                    f"{changed[0]} has changed since the session began: worker {node.gateway.id} "
                    "has loaded another version of it, and nothing more is started; run the same "
                    "command again"
                )
                self.halt(self._differs)


def _plain(places: Mapping[str, RunFolder]) -> dict[str, list[Any]]:
    return {name: [*astuple(there)] for name, there in places.items()}
