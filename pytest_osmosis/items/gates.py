"""Gates as pytest items: collected and selected like any other, evaluated when all runs have ended.

Each process that collects lists them; none runs them: the process that reports evaluates them at
the end (`session/gates_plugin.py`). A gate that is selected makes its suite's runs observations.
Without it (`-k` for one row, a node id) the runs decide, as in a session without gates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..run_result import SuiteInfo
from .collection import EvalFile, FunctionlessItem
from .marks import MARKER, ROOT, is_gate

if TYPE_CHECKING:
    from ..analysis.gates.session_gates import GateEvaluator
    from ..rollouts.suite import Suite
    from ..run_result import RunId

NAMED = "osmosis_named_gates"
"""The attribute of the options that tells workers which gates the command line names."""


def node_id(text: str, info: SuiteInfo, *, several: bool) -> str:
    """Return the node id of a gate; with several suites it names the suite too."""
    return "::".join([ROOT, info.name, text] if several else [ROOT, text])


def take_named(config: pytest.Config) -> bool:
    """Take node ids of gates from the arguments, paths to pytest; return whether none is left.

    Workers, which get the controller's arguments, read the gates from an option.
    """
    named = [argument for argument in config.args if is_gate(argument)]
    if named:
        setattr(config.option, NAMED, named)
        config.args[:] = [argument for argument in config.args if argument not in named]
    return bool(named) and not config.args


class GateFile(pytest.Collector):
    """What the gates stand below when items are listed."""

    def collect(self) -> Iterator[pytest.Item]:
        """Return nothing: its items are made once the runs are known."""
        return iter(())


class GateItem(FunctionlessItem):
    """A gate on one suite."""

    def __init__(self, *, suite: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def runtest(self) -> None:
        """Never called: the gate is evaluated when all runs have ended."""

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Return what pytest shows."""
        return ROOT, None, self.name

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return the same, as a path."""
        return self.path, None, self.name


class GateCollector:
    """A pytest plugin, registered in every process where there are gates."""

    def __init__(
        self,
        evaluator: GateEvaluator,
        suites: Mapping[str, Suite],
        *,
        several: bool,
        key_of: Callable[[pytest.Item], RunId | None],
    ) -> None:
        self._evaluator = evaluator
        self._suites = suites
        self.several = several
        self._key_of = key_of
        self.selected: frozenset[str] = frozenset()
        """Node ids of the gates that are to be evaluated."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Put back the runs that a failed gate needs, where `--lf` leaves them out."""
        report = yield
        if isinstance(collector, EvalFile) and collector.config.getoption("lf", False):
            failed = _last_failed(collector.config)
            if any(gate in failed for suite in collector.suites for gate in self._ids(suite)):
                report.result = list(collector.collect())
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Add the gates before anything is selected, and put back runs that selected ones need."""
        runs = self._by_suite(items)
        items.extend(self._collected(session, runs))
        result = yield
        gates = [item for item in items if isinstance(item, GateItem)]
        self.selected = frozenset(gate.nodeid for gate in gates)
        left = self._by_suite(items)
        groups = {self._suites[gate.suite].info.group for gate in gates}
        for each in self._suites.values():
            each.gated = each.gated or each.info.group in groups
        for suite in {gate.suite for gate in gates}:
            if config.getoption("lf", False) or not left.get(suite):
                _put_back(runs.get(suite, []), items, config)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """A gate is not run; its report comes when the runs have theirs."""
        return True if isinstance(item, GateItem) else None

    def _collected(
        self, session: pytest.Session, runs: Mapping[str, list[pytest.Item]]
    ) -> list[pytest.Item]:
        """Return the gates, and announce them to plugins as what a collector has found."""
        root = GateFile.from_parent(session, name=ROOT, nodeid=ROOT)
        root.add_marker(MARKER)
        gates = list(self._gates(root, runs))
        for gate in gates:
            session.config.hook.pytest_itemcollected(item=gate)
        report = pytest.CollectReport(ROOT, "passed", longrepr=None, result=list(gates))
        session.config.hook.pytest_collectreport(report=report)
        return gates

    def _gates(
        self, root: GateFile, runs: Mapping[str, list[pytest.Item]]
    ) -> Iterator[pytest.Item]:
        """Yield the gates that are named, or those of suites whose runs were all collected."""
        named = getattr(root.config.option, NAMED, None)
        known = set()
        for name, suite in self._suites.items():
            whole = len(runs.get(name, ())) == suite.info.total_runs
            for gate in self._ids(suite):
                known.add(gate)
                if gate in named if named else whole:
                    title = gate.removeprefix(f"{ROOT}::")
                    yield GateItem.from_parent(root, name=title, nodeid=gate, suite=name)
        unknown = sorted(set(named or ()) - known)
        if unknown:
            there = ", ".join(sorted(known)) or "none"
            raise pytest.UsageError(f"{unknown[0]}: there is no such gate, only {there}")

    def _ids(self, suite: Suite) -> list[str]:
        texts = self._evaluator.texts(suite.info)
        return [node_id(text, suite.info, several=self.several) for text in texts]

    def _by_suite(self, items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
        """Return the items that are runs, by suite."""
        found: dict[str, list[pytest.Item]] = {}
        for item in items:
            key = self._key_of(item)
            if key is not None:
                found.setdefault(key.suite, []).append(item)
        return found


def _put_back(runs: list[pytest.Item], items: list[pytest.Item], config: pytest.Config) -> None:
    """Put back runs that were deselected, and that a gate needs."""
    here = set(items)
    missing = [run for run in runs if run not in here]
    items[:0] = missing
    compat.forget_deselected(config, missing)


def _last_failed(config: pytest.Config) -> Mapping[str, bool]:
    cache: pytest.Cache | None = getattr(config, "cache", None)
    known: Mapping[str, bool] = {} if cache is None else cache.get("cache/lastfailed", {})
    return known
