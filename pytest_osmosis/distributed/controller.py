"""The xdist controller's part: workers introduced, fed, watched, and their results gathered.

Told by workers over the channels of `schedule`; tells the session's `ResultSink`. Runs no item.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ..items.gates import is_gate
from ..items.nodeids import RunNames
from ..results import DECIDED, REPORT_FIELD, RunResult, SuiteInfo
from ..rollouts.suite import Suite
from ..session.preflight import is_quiet, usage_errors
from ..session.result_sink import ResultSink
from ..storage.fingerprint import EvalFingerprint
from . import scheduler
from .heartbeat import Watch


class Controller:
    """One a session, in the controller's process."""

    def __init__(
        self,
        config: pytest.Config,
        gathering: ResultSink,
        suites: Mapping[str, Suite],
        *,
        worker_timeout_s: float,
        loaded: Mapping[str, Mapping[str, str]],
    ) -> None:
        """`loaded`: digests of the files that this process has loaded, by suite and name."""
        self._config = config
        self._gathering = gathering
        self._link = scheduler.ControllerLink(self._told)
        self._scheduling: scheduler.WindowScheduling | None = None
        self._watch = Watch(silence_s=worker_timeout_s)
        self._pids: dict[Any, int] = {}
        self._loaded = dict(loaded)
        self._differs: str | None = None
        """What a worker has loaded that is not what the session began with."""
        self._selected: Mapping[str, int] = {}
        self._identities: dict[str, EvalFingerprint] = {}
        """Those of marked functions, which only workers collect."""
        self._names = RunNames(gathering.recorder.infos, gathering.keeper.plans, suites)

    def introduce(self, node: Any, base_urls: Mapping[str, str]) -> None:
        """A worker is about to start: what it must know."""
        given = {
            "base_urls": dict(base_urls),
            "places": self._gathering.keeper.places(),
        }
        self._link.open(node, json.dumps(given))

    def make_scheduler(self, batch_size: int) -> scheduler.WindowScheduling:
        """The scheduler that keeps every worker's window full."""
        self._scheduling = scheduler.WindowScheduling(
            self._config, batch_size=batch_size, channels=self._link.channels
        )
        self._scheduling.on_collected = self._collected
        self._scheduling.on_other_items = self._gathering.halt
        self._scheduling.is_judged = is_gate
        self._scheduling.recall = self._kept
        self._scheduling.is_reported = self._gathering.recorder.has_report
        return self._scheduling

    def _collected(self) -> None:
        """Main thread: the workers' items are known, and none has been given out."""
        keeper = self._gathering.keeper
        if self._differs is not None:
            raise pytest.UsageError(self._differs)
        with usage_errors():
            keeper.open(list(self._identities.values()))
            decisions = self._gathering.recorder.decisions
            marked = [identity.info for identity in self._identities.values()]
            keeper.lines += decisions.begin(marked, keeper.places())
            keeper.begin(name for name, runs in self._selected.items() if runs)
        decisions.count_runs_only()
        self._link.broadcast("places", {name: list(at) for name, at in keeper.places().items()})
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        for line in keeper.take_lines(quiet=is_quiet(self._config)):
            if terminal is not None:
                terminal.write_line(line)

    def _kept(self, nodeid: str) -> scheduler.CachedResult | None:
        """The run of an item, if an earlier session kept it."""
        keeper = self._gathering.keeper
        if not keeper.resumes():
            return None
        found = self._names.find(nodeid, self._config.rootpath)
        kept = None if found is None else keeper.kept(found)
        if found is None or kept is None:
            return None
        return scheduler.CachedResult(
            kept.result.to_json(), kept.why, found.suite not in self._identities
        )

    def halt(self, reason: str) -> None:
        """Start nothing more anywhere."""
        if self._scheduling is not None:
            self._scheduling.halt(reason, keep_items=reason == DECIDED)

    def resize(self, window: int) -> None:
        """So many rollouts may be in flight over all workers."""
        if self._scheduling is not None:
            self._scheduling.resize(window)

    def cancel(self) -> None:
        """The session ends now: workers cancel what they have in flight, and end."""
        self._link.broadcast("cancel", None)
        for node in self._scheduling.nodes if self._scheduling is not None else ():
            node.shutdown()

    def worker_down(self, node: Any) -> None:
        """A worker has ended, well or not."""
        if node in self._pids:
            self._watch.gone(self._pids[node])

    def close(self) -> None:
        """End nobody any more."""
        self._watch.stop()

    def blame(self, report: pytest.TestReport, node: Any) -> None:
        """A worker died of this item's run; its report tells it as a result."""
        found = self._names.find(report.nodeid, self._config.rootpath)
        if found is None:
            return
        silent_s = self._watch.ended.get(self._pids.get(node, -1))
        how = "died" if silent_s is None else f"was frozen for {silent_s:.0f} s and was ended"
        error = f"the worker process {node.gateway.id} {how} during this run"
        result = RunResult(
            found.suite, found.row_index, found.run_index, error=error, error_type="worker_lost"
        )
        path, _, name = report.nodeid.partition("::")
        report.when = "setup"  # an error, not a failure
        report.location = (path, None, name)
        report.longrepr = f"worker lost: {result.error}"
        setattr(report, REPORT_FIELD, result.to_json())

    def _told(self, node: Any, message: tuple[Any, ...]) -> None:
        """Receiver thread: what a worker told."""
        kind, *values = message
        gathering, scheduling = self._gathering, self._scheduling
        if kind == "finished":
            self._run_ended(node, *values)
        elif kind == "gave up" and scheduling is not None:
            scheduling.excuse(node)
        elif kind in ("problem", "unwritten"):
            tell = gathering.halt if kind == "problem" else gathering.recorder.fail
            tell(values[0])
        elif kind == "alive":
            self._pids[node] = values[0]
            self._watch.heard(values[0])
        elif kind == "pace":
            gathering.paced(*values)
            if values[1] > 0:
                self._link.broadcast("hold", values[1], but=node)
        else:
            self._introduced(node, kind, values)

    def _run_ended(self, node: Any, index: int, text: str, why: str, decided: bool) -> None:
        self._gathering.ended(RunResult.from_json(text), text, why, decided=decided)
        if self._scheduling is not None:
            run = scheduler.CachedResult(text, why, decided)
            self._scheduling.note_finished(node, index, run)

    def _introduced(self, node: Any, kind: str, values: Sequence[Any]) -> None:
        """What a worker tells before it runs anything."""
        if kind == "loaded":
            self._compare(node, values[0])
        elif kind == "suites":
            for text in values[0]:
                self._gathering.recorder.declare(SuiteInfo.from_json(text))
        elif kind == "selected":
            self._selected = values[0]
            self._gathering.recorder.select(values[0])
        elif kind == "identities":
            told = [EvalFingerprint.from_json(json.loads(text)) for text in values[0]]
            self._identities = {identity.info.name: identity for identity in told}

    def _compare(self, node: Any, loaded: Mapping[str, Mapping[str, str]]) -> None:
        """A worker that has other files is of no use: runs of different versions are not mixed."""
        for suite, files in loaded.items():
            known = self._loaded.setdefault(suite, files)
            changed = sorted(n for n in {*known, *files} if known.get(n) != files.get(n))
            if changed and self._differs is None:
                self._differs = (
                    f"{changed[0]} has changed since the session began: worker {node.gateway.id} "
                    "has loaded another version of it, and nothing more is started; run the same "
                    "command again"
                )
                self._gathering.halt(self._differs)
