"""The protocol of a run's item: the wait for its rollout, and the reports about it.

One report an item where nothing looks at its phases. Where a plugin, JUnit or `--setup-show` does,
the item is left to pytest, which runs and reports it like any other.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from osmosis_ai.running.code_warning import CATEGORIES, CodeWarning
from osmosis_ai.running.engine import EngineClosed

from .. import compat
from ..escaping import encodable
from ..run_result import (
    DECIDED,
    REPORT_FIELD,
    SINGLE_FIELD,
    SUITE_FIELD,
    RolloutRecord,
    RunId,
    RunResult,
)
from .collection import RunItem
from .report_contents import FailureSections

if TYPE_CHECKING:
    from ..rollouts.around import AroundRuns

OBSERVED = "osmosis_observed"
"""The attribute of a report of a run that did not pass, where gates decide: its outcome."""

ERRORED = "errored"
"""What pytest counts such runs as whose outcome is `error`: its own word would turn all red."""

_RERUNNERS = ("rerunfailures",)
"""Names of plugins that run items again: a rollout is paid for, and not repeated."""

_PHASE_HOOKS = (
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_runtest_logreport",
    "pytest_report_teststatus",
)
WORKER_PACKAGES = ("xdist", "__channelexec__")
"""Packages of xdist's plugins; the second is what the plugin of a worker is called there."""
_INDIFFERENT = (
    *WORKER_PACKAGES,
    "_pytest",
    "pytest_osmosis",
    "_hypothesis_pytestplugin",  # looks at test functions only
)
"""Packages whose hooks do nothing for our items, or do as well with one report as with three."""


class Rollouts(Protocol):
    """Where the runs of items come from: this process, or others."""

    warnings: deque[CodeWarning]
    """What user code was found to do to the session, until it is taken."""
    around: Sequence[AroundRuns]
    """What features put around runs."""
    last_words: str | None
    """What is to be said once it is closed."""

    @property
    def halted(self) -> str | None:
        """Why nothing more is started, once that is so."""

    def coming(self, keys: Iterable[RunId]) -> None:
        """Offer the next runs, in order."""

    def result(self, key: RunId) -> RolloutRecord:
        """Wait for a run and return its record; `EngineClosed` when it will not be run."""

    def resize(self, window: int) -> None:
        """Set how many rollouts may be in flight."""

    def halt(self, reason: str) -> None:
        """Start no further run."""

    def cancel(self) -> None:
        """Start nothing more and cancel what is in flight; from any thread."""

    def close(self) -> object:
        """Cancel what is in flight and release everything."""


def needs_phases(config: pytest.Config) -> bool:
    """Return whether something in the session looks at the three phases of an item."""
    option = config.option
    asked = ("xmlpath", "setupshow", "setupplan", "setuponly")
    if any(getattr(option, name, None) for name in asked) or not compat.can_tear_down(config):
        return True
    return any(
        _package_of(implementation.plugin) not in _INDIFFERENT
        for name in _PHASE_HOOKS
        for implementation in getattr(config.hook, name).get_hookimpls()
    )


def plugins_of(config: pytest.Config, packages: Collection[str]) -> list[object]:
    """Return the plugins of a session that come from these packages."""
    plugins = config.pluginmanager.get_plugins()
    return [plugin for plugin in plugins if _package_of(plugin) in packages]


def _package_of(plugin: object) -> str:
    """Return the package that a plugin of the session comes from."""
    module = getattr(plugin, "__module__", None) or type(plugin).__module__
    name = getattr(plugin, "__name__", module) if module in ("builtins", None) else module
    return str(name).partition(".")[0]


def run_item(
    item: RunItem,
    nextitem: pytest.Item | None,
    rollouts: Rollouts,
    *,
    phases: bool,
    sections: FailureSections,
    relays: Collection[object],
    on_report: Callable[[RunId, RunResult], None],
) -> bool:
    """Wait for the run and report it; False leaves the report to pytest's own protocol.

    That also has the report of an item with markers: `xfail` is pytest's business.
    A run that is no longer needed is reported as skipped, one that will not be run for another
    reason is not reported. `on_report` is called before anything is reported of a run. `relays`:
    plugins that need not hear of an item's start and finish where it has one report.
    """
    try:
        item.finished = rollouts.result(item.run_id)
    except EngineClosed:
        compat.tear_down_before(item, nextitem)
        if rollouts.halted == DECIDED:
            _report_not_run(item)
        return True
    except pytest.fail.Exception as error:  # another plugin's deadline, in our thread
        result = item.suite.lost(item.run_id, error=str(error.msg), error_type="timeout")
        item.finished = RolloutRecord(result)
    if rollouts.warnings:
        warn_of_code(item.parent.hooks, rollouts.warnings, nodeid=item.nodeid)
    if item.config.hook.pytest_osmosis_run_result.get_hookimpls():
        _edit(item, item.finished)
    on_report(item.run_id, item.finished.result)
    if phases or item.own_markers:
        item.user_properties = properties(item.finished.result)
        return _run_phases(item, nextitem)
    _report_once(item, nextitem, sections, relays)
    return True


def warn_of_code(hook: Any, found: deque[CodeWarning], *, nodeid: str) -> None:
    """Put what user code was found to do to the session into pytest's summary of warnings.

    Not by `warnings.warn`: under `-W error` that would raise in the middle of an item.
    """
    while found:
        each = found.popleft()
        category = CATEGORIES[each.category]
        message = warnings.WarningMessage(category(each.text), category, each.filename, each.line)
        hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": message,
                "nodeid": nodeid,
                "when": "runtest",
                "location": None,
            }
        )


def _report_not_run(item: RunItem) -> None:
    ihook = item.ihook
    ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="skipped",
        longrepr=(item.location[0], 0, f"not run: {DECIDED}"),
        when="setup",
    )
    ihook.pytest_runtest_logreport(report=report)
    ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _edit(item: RunItem, finished: RolloutRecord) -> None:
    if finished.result.cached:
        return
    edited = item.config.hook.pytest_osmosis_run_result(
        result=finished.result, messages=finished.messages, config=item.config
    )
    if edited is None:
        return
    if not isinstance(edited, RunResult) or edited.run_id != finished.result.run_id:
        raise pytest.UsageError("pytest_osmosis_run_result must return the result of the same run")
    item.finished = replace(finished, result=edited)


def _run_phases(item: RunItem, nextitem: pytest.Item | None) -> bool:
    """Have pytest itself run the item where a plugin that reruns items would otherwise do it."""
    plugins = item.config.pluginmanager
    runner: Any = plugins.get_plugin("runner")
    if runner is None or not any(map(plugins.has_plugin, _RERUNNERS)):
        return False
    return bool(runner.pytest_runtest_protocol(item=item, nextitem=nextitem))


def _report_once(
    item: RunItem,
    nextitem: pytest.Item | None,
    sections: FailureSections,
    relays: Collection[object],
) -> None:
    finished = item.finished
    assert finished is not None
    compat.tear_down_before(item, nextitem)
    ihook, nodeid, location = item.parent.hooks, item.nodeid, item.location
    others = item.parent.hooks_without(relays) if relays else ihook
    others.pytest_runtest_logstart(nodeid=nodeid, location=location)
    outcome = finished.result.outcome
    report = pytest.TestReport(
        nodeid=compat.node_id(item),
        location=location,
        keywords={},
        outcome="passed" if outcome == "passed" else "failed",
        longrepr=None if outcome == "passed" else sections.of(finished.result, nodeid),
        when="setup" if outcome == "error" else "call",
        sections=finished.sections,
        **timing(finished.result),
    )
    if outcome != "passed" and item.suite.observes(item.run_id.row_index):
        observe(report, finished.result, item.suite.spec.pass_threshold)
    setattr(report, REPORT_FIELD, finished.result)
    if relays:
        setattr(report, SINGLE_FIELD, True)
    ihook.pytest_runtest_logreport(report=report)
    others.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    item.finished = None


def observe(
    report: pytest.TestReport, result: RunResult, threshold: float, reason: str | None = None
) -> None:
    """Report a run that did not pass as what it is, where gates decide: it fails nothing.

    For pytest it is skipped; `reason` stands in the place of the run's own.
    """
    from ..rollouts.failure_text import headline

    report.outcome = "skipped"
    # for JUnit, and for plugins that know no other reason
    report.wasxfail = reason or headline(result, threshold)
    setattr(report, OBSERVED, result.outcome)


def complete_report(item: RunItem, report: pytest.TestReport, sections: FailureSections) -> None:
    """Put the rollout's time, output and result into one of pytest's three reports."""
    finished = item.finished
    if finished is None:
        setattr(report, SUITE_FIELD, item.run_id.suite)
        return
    final = report.when == "call" or (report.when == "setup" and report.failed)
    if not final:
        report.duration = 0.0
        if report.when == "teardown":  # where JUnit looks for the output of all phases
            report.sections.extend(finished.sections)
        return
    for name, value in timing(finished.result).items():
        setattr(report, name, value)
    report.sections.extend(finished.sections)
    if report.failed:
        report.longrepr = sections.of(finished.result, item.nodeid)
    if report.failed and item.suite.observes(item.run_id.row_index):
        observe(report, finished.result, item.suite.spec.pass_threshold)
    setattr(report, REPORT_FIELD, finished.result)


def properties(result: RunResult) -> list[tuple[str, object]]:
    """Return what JUnit and other reports keep of a run, by name."""
    named: list[tuple[str, object]] = [
        ("osmosis_row_index", result.row_index),
        ("osmosis_run_index", result.run_index),
        ("osmosis_duration_ms", result.duration_ms),
    ]
    if result.tokens is not None:
        named.append(("osmosis_tokens", result.tokens))
    named += [(f"osmosis_score[{name}]", score) for name, score in result.scores.items()]
    named += [(f"osmosis_reason[{name}]", encodable(why)) for name, why in result.reasons.items()]
    if result.error_type is not None:
        named.append(("osmosis_error_type", result.error_type))
    return named


def timing(result: RunResult) -> dict[str, Any]:
    """Return when a run took place, as pytest's reports say it."""
    seconds = result.duration_ms / 1000.0
    start = result.started_at or time.time()
    return {"duration": seconds, "start": start, "stop": start + seconds}
