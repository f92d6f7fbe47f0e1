"""`@pytest.mark.osmosis`: an ordinary test function, run on every row and run of a dataset.

The function is parametrised over rows and runs and gets the finished `rollout`; its own asserts
decide. Registered as a plugin where an evaluation is asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from inspect import isasyncgenfunction, iscoroutinefunction
from pathlib import Path
from typing import Any, Protocol

import pytest

from osmosis_ai.messages import last_assistant_text
from osmosis_ai.running.engine import EngineClosed

from ..errors import ConfigurationError
from ..hookspecs import hooks_of
from ..options.reader import OptionReader
from ..options.table import BY_NAME
from ..rollouts.failure_text import rollout_section
from ..rollouts.prepare import prepare
from ..rollouts.scoring import TEST
from ..rollouts.suite import Suite
from ..run_result import REPORT_FIELD, ROLLOUT, RolloutRecord, RunId, RunResult
from ..spec import EvalSpec, SessionSpec
from .collection import RunItem
from .nodeids import parameter_id
from .protocol import set_below, warn_of_code
from .runner import ItemRunner, run_id_of

_OVERRIDES = ("agent", "data", "n", "pass_threshold", "limit", "offset", "max_turns")
_NUMBERS = {"n", "pass_threshold", "limit", "offset", "max_turns"}
_CALL_THEIR_OWN = {"_pytest", "anyio", "pytest_asyncio"}
"""Packages that call no `async def` test, or only those that are known at collection."""
_ROLLOUT = pytest.StashKey["Rollout"]()


class Rollout:
    """A finished rollout, as a test gets it."""

    def __init__(self, finished: RolloutRecord) -> None:
        self._finished = finished
        self._scores: dict[str, float] = {}
        self._thresholds: dict[str, float] = {}
        self.messages: list[dict[str, Any]] = finished.messages
        """The whole conversation."""
        self.solution_str: str = last_assistant_text(finished.messages)
        """The text of the last assistant message."""
        self.ground_truth: str | None = finished.ground_truth
        self.metadata: Mapping[str, Any] = finished.metadata
        """The row's columns."""
        self.reward: float | None = finished.reward
        """The reward that the agent gave itself, if it did."""

    @property
    def row_index(self) -> int:
        """Position of the row in its file, from 0."""
        return self._finished.result.row_index

    @property
    def run_index(self) -> int:
        """Which of the row's runs this is, from 0."""
        return self._finished.result.run_index

    @property
    def usage(self) -> dict[str, int | None]:
        """`prompt_tokens`, `completion_tokens`, `total_tokens`; None where not known."""
        result = self._finished.result
        return {
            "prompt_tokens": result.prompt_tokens,
            "completion_tokens": result.completion_tokens,
            "total_tokens": result.tokens,
        }

    @property
    def duration_s(self) -> float:
        """How long the rollout took."""
        return self._finished.result.duration_ms / 1000.0

    def record_score(self, name: str, value: float, *, pass_threshold: float | None = None) -> None:
        """Put a score into the report, beside the outcome of the test, which it does not change.

        Its figures are over the runs that recorded it. With `pass_threshold`, which is the same in
        every run, it has pass@k too.

        Raises:
            ValueError: for a number that is not finite, or a name that is taken.
        """
        from osmosis_ai.agents.numbers import finite_number

        if name == TEST:
            raise ValueError(f"the score {name!r} is the outcome of the test itself")
        self._scores[name] = finite_number(value, f"the score {name!r}")
        if pass_threshold is not None:
            what = f"the pass threshold of {name!r}"
            self._thresholds[name] = finite_number(pass_threshold, what)

    def __repr__(self) -> str:
        return f"<rollout of row {self.row_index}, run {self.run_index}>"


class Host(Protocol):
    """The evaluation that marked tests are part of."""

    spec: SessionSpec
    suites: dict[str, Suite]
    runner: ItemRunner | None

    def add(self, suite: Suite) -> None:
        """Add a suite that items will be collected for."""


class MarkerPlugin:
    """The fixture `rollout` and the hooks of marked tests."""

    def __init__(self, evaluation: Host) -> None:
        self._evaluation = evaluation

    @pytest.fixture
    def rollout(self, request: pytest.FixtureRequest) -> Rollout:
        """The finished rollout of one run of one row; for tests with `@pytest.mark.osmosis`."""
        key = getattr(request, "param", None)
        if not isinstance(key, RunId):
            pytest.fail(
                "the fixture 'rollout' needs @pytest.mark.osmosis(agent=..., data=...) on the test",
                pytrace=False,
            )
        kept: Rollout | None = request.node.stash.get(_ROLLOUT, None)
        if kept is not None:  # a rerun of the test: the rollout is not paid for twice
            return kept
        runner = self._evaluation.runner
        if runner is None:
            pytest.skip("--setup-only sets up the other fixtures, and runs no rollout")
        runner.begin(key)
        try:
            finished = runner.rollouts.result(key)
            node = request.node
            warn_of_code(node.ihook, runner.rollouts.warnings(), nodeid=node.nodeid)
        except EngineClosed:
            pytest.skip(f"not run: {runner.rollouts.halted or 'the session is ending'}")
        made = request.node.stash[_ROLLOUT] = Rollout(finished)
        if finished.result.outcome == "error":
            pytest.fail(self._explained(finished), pytrace=False)
        return made

    def _explained(self, finished: RolloutRecord) -> str:
        return self._evaluation.suites[finished.result.suite].explain(finished)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrise a marked function over the rows and runs of its suite."""
        marker = metafunc.definition.get_closest_marker("osmosis")
        if marker is None:
            return
        definition = metafunc.definition
        if "rollout" not in metafunc.fixturenames:
            pytest.fail(
                f"{definition.name}: @pytest.mark.osmosis needs the argument `rollout`", False
            )
        if definition.get_closest_marker("parametrize") is not None:
            pytest.fail(
                f"{definition.name}: @pytest.mark.osmosis does not go with "
                "@pytest.mark.parametrize: each run of a row is one test",
                pytrace=False,
            )
        suite = _suite(self._evaluation, definition, marker)
        keys = [
            RunId(suite.spec.name, row_index, run_index)
            for row_index in suite.dataset.row_indices
            for run_index in range(suite.spec.n)
        ]
        ids = [parameter_id(suite.dataset.row_name(key.row_index), key.run_index) for key in keys]
        metafunc.parametrize("rollout", keys, ids=ids, indirect=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # after a plugin has made the item its own
    def pytest_pycollect_makeitem(self) -> Generator[None, Any, Any]:
        """Refuse a function that has several tests for a run, or that nothing would call."""
        made = yield
        runs = [run_id_of(item) for item in made] if isinstance(made, list) else []
        if not runs or None in runs:
            return made
        if not _is_called(made[0]):
            pytest.fail(
                f"{made[0].originalname}: an `async def` test needs a plugin that calls it, and "
                "the plugin's marker; `def` will do",
                pytrace=False,
            )
        if len(set(runs)) < len(runs):
            pytest.fail(
                f"{made[0].originalname}: @pytest.mark.osmosis does not go with a fixture that has "
                "`params`, nor with a plugin that repeats tests: each run of a row is one test",
                pytrace=False,
            )
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Say where the session is; forget the conversation once the item has ended for good."""
        if self._evaluation.runner is not None:
            self._evaluation.runner.reach(item)
        result = yield
        if isinstance(item, RunItem):
            item.finished = None
        if isinstance(item, pytest.Function) and _ROLLOUT in item.stash:
            del item.stash[_ROLLOUT]
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Fail the test of a rollout that the agent itself broke, before the asserts see it."""
        made = item.stash.get(_ROLLOUT, None)
        if made is not None and not made._finished.result.success:
            pytest.fail(self._explained(made._finished), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the run's result, with the outcome of the asserts, into the report that decides."""
        report = yield
        made = item.stash.get(_ROLLOUT, None)
        if made is None:
            return report
        decides = report.when == "call" or (report.when == "setup" and report.failed)
        if decides:
            result, runner = _decided(made, report), self._evaluation.runner
            if runner is not None:
                runner.on_report(result.run_id, result)
            setattr(report, REPORT_FIELD, result)
            if report.failed and result.success:
                suite = self._evaluation.suites[result.suite]
                turns, redact = suite.spec.max_turns, suite.redact
                said = rollout_section(made._finished, turns, redact=redact)
                report.sections.insert(0, (ROLLOUT, said))
            if report.failed and result.success and self._evaluation.suites[result.suite].gated:
                set_below(report, str(call.excinfo.exconly()) if call.excinfo else "failed")
        if decides or report.when == "teardown":  # where JUnit looks for the output of all phases
            report.sections.extend(made._finished.sections)
        return report


def _is_called(item: pytest.Item) -> bool:
    """Whether its test is called: pytest calls no `async def`, and fails it after its rollout."""
    if type(item) is not pytest.Function or not (
        iscoroutinefunction(item.obj) or isasyncgenfunction(item.obj)
    ):
        return True
    if item.config.pluginmanager.has_plugin("trio"):  # it may mark the item later
        return True
    callers = {_package(each.plugin) for each in item.ihook.pytest_pyfunc_call.get_hookimpls()}
    is_anyio = "anyio" in callers and "anyio_backend" in item.fixturenames
    return is_anyio or not callers <= _CALL_THEIR_OWN


def _package(plugin: object) -> str:
    module: str = getattr(plugin, "__name__", type(plugin).__module__)
    return module.partition(".")[0]


def _suite(evaluation: Host, definition: Any, marker: pytest.Mark) -> Suite:
    known = evaluation.suites.get(definition.nodeid)
    if known is not None:
        return known
    suite = _prepared(evaluation.spec, definition, marker)
    if isinstance(suite, str):
        pytest.fail(f"{definition.nodeid}: {suite}", pytrace=False)
    evaluation.add(suite)
    return suite


def _prepared(session: SessionSpec, definition: Any, marker: pytest.Mark) -> Suite | str:
    """Return the suite, or what is wrong, in the words of the marker where it named it."""
    assert session.defaults is not None  # an evaluation is asked for
    try:
        spec = _spec(session.defaults, definition, marker)
        session = replace(session, roots=(definition.path.parent, *session.roots))
        return prepare(spec, session, hooks=hooks_of(definition.config))
    except ConfigurationError as error:
        told = str(error)
    for name in ("agent", "data"):
        if name in marker.kwargs and told.startswith(f"--osmosis-{name} "):
            return f"@pytest.mark.osmosis({name}=...): {told.removeprefix(f'--osmosis-{name} ')}"
    return told


def _spec(defaults: EvalSpec, definition: Any, marker: pytest.Mark) -> EvalSpec:
    given = dict(marker.kwargs)
    if marker.args:
        raise ConfigurationError(
            "@pytest.mark.osmosis takes keyword arguments alone: agent=, data=, n=, …"
        )
    unknown = sorted(set(given).difference(_OVERRIDES))
    if unknown:
        raise ConfigurationError(
            f"@pytest.mark.osmosis has no argument {unknown[0]!r}; it has {', '.join(_OVERRIDES)}"
        )
    given |= _checked_numbers(given)
    agent, data = given.get("agent"), given.pop("data", None)
    for name, value, what in (("agent", agent, "server:agent_loop"), ("data", data, "data.jsonl")):
        if not isinstance(value, str | Path | None):
            raise ConfigurationError(
                f"@pytest.mark.osmosis({name}=...): expected text, such as {what!r}, "
                f"not {type(value).__name__}"
            )
    options = OptionReader(definition.config)
    if data is not None:
        given["data"] = (definition.path.parent / Path(data)).resolve()
    elif texts := options("data"):
        given["data"] = options.resolved("data", texts[0])
    else:
        raise ConfigurationError("@pytest.mark.osmosis needs data=..., or --osmosis-data")
    spec = replace(defaults, name=definition.nodeid, eval_fns=(), marked=True, **given)
    if not spec.agent:
        raise ConfigurationError("@pytest.mark.osmosis needs agent=..., or --osmosis-agent")
    if not spec.model.model:
        raise ConfigurationError(
            "no model to ask: give --osmosis-model, or osmosis_model in the ini file"
        )
    return spec


def _checked_numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, held to what their options accept; a string is none."""
    checked = {}
    for name in _NUMBERS & given.keys():
        value = given[name]
        text = repr(value) if isinstance(value, str) else str(value)
        try:
            checked[name] = BY_NAME[name.replace("_", "-")].parse(text)
        except ValueError as error:
            raise ConfigurationError(f"@pytest.mark.osmosis({name}={value!r}): {error}") from None
    return checked


def _decided(made: Rollout, report: pytest.TestReport) -> RunResult:
    result = made._finished.result
    if not result.success:
        return result
    scores = dict(made._scores)
    if report.skipped and not hasattr(report, "wasxfail"):
        return replace(result, scores=scores, error="the test was skipped", error_type="eval_fn")
    scores[TEST] = 1.0 if report.passed else 0.0
    return replace(result, scores=scores, thresholds=dict(made._thresholds), passed=report.passed)
