"""`@pytest.mark.osmosis`: an ordinary test function, run on every row and run of a dataset.

The function is parametrised over rows and runs and gets the finished `rollout`; its own asserts
decide. Registered as a plugin where an evaluation is asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import replace
from inspect import isasyncgenfunction, iscoroutinefunction, ismethod, signature
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import pytest

from osmosis_ai.blocking import run_blocking
from osmosis_ai.running.engine import EngineClosed

from ...api_keys import key_of
from ...errors import ConfigurationError
from ...items.nodeids import parameter_id
from ...items.protocol import observe, warn_of_code
from ...items.rollout import Rollout
from ...items.runner import ItemRunner, run_id_of
from ...options import effects
from ...options.reader import OptionReader
from ...options.table import BY_NAME
from ...outcomes import SKIPPED
from ...rollouts.failure_text import OURS, rollout_section
from ...rollouts.prepare import prepare
from ...rollouts.scoring import TEST
from ...rollouts.suite import Suite
from ...run_result import REPORT_FIELD, ROLLOUT, RolloutRecord, RunId, RunResult
from ...spec import EvalSpec, ModelSpec, SessionSpec
from ...storage.atomic_write import write_whole
from ...storage.run_directory import OSMOSIS, make_private
from ...user_code.import_object import user_traceback
from ...user_code.load_agent import name_of_object

_OVERRIDES = (
    "agent", "data", "model", "n", "pass_threshold", "limit", "offset", "max_turns", "shared",
)  # fmt: skip
_NUMBERS = {"n", "pass_threshold", "limit", "offset", "max_turns"}
_ROLLOUT = pytest.StashKey[Rollout]()
_WHERE = "@pytest.mark.osmosis"


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
        self._agents: dict[str, Any] = {}
        """The agents that are objects, by suite; text otherwise."""
        self._models: dict[str, ModelSpec] = {}
        """Those that markers name."""
        self._leaders: list[Suite] = []
        """The first of each group of suites that have the same rollouts."""

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
            for around in runner.rollouts.around:
                around.join(key)  # the test itself may ask a judge
            node = request.node
            warn_of_code(node.ihook, runner.rollouts.warnings, nodeid=node.nodeid)
        except EngineClosed:
            pytest.skip(f"not run: {runner.rollouts.halted or 'the session is ending'}")
        made = request.node.stash[_ROLLOUT] = Rollout(finished)
        if finished.result.outcome == "error":
            pytest.fail(self._explained(finished), pytrace=False)
        return made

    def _explained(self, finished: RolloutRecord) -> str:
        return self._evaluation.suites[finished.result.suite].explain(finished)

    def parametrise(self, metafunc: pytest.Metafunc) -> None:
        """Parametrise a marked function over the rows and runs of its suite."""
        marker = metafunc.definition.get_closest_marker("osmosis")
        if marker is None:
            return
        definition = metafunc.definition
        if "rollout" not in metafunc.fixturenames:
            pytest.fail(
                f"{definition.name}: @pytest.mark.osmosis needs the argument `rollout`", False
            )
        if isasyncgenfunction(definition.obj):
            pytest.fail(f"{definition.name}: a test that has `yield` runs no assert", pytrace=False)
        suite = self._suite(definition, marker)
        keys = [
            RunId(suite.spec.name, row_index, run_index)
            for row_index in suite.dataset.row_indices
            for run_index in range(suite.spec.n)
        ]
        ids = [parameter_id(suite.dataset.row_name(key.row_index), key.run_index) for key in keys]
        metafunc.parametrize("rollout", keys, ids=ids, indirect=True)

    def divide(self, made: list[pytest.Item]) -> None:
        """Give each set of further parameters a suite, where a run has several tests."""
        runs = [run_id_of(item) for item in made]
        if runs and None not in runs and len(set(runs)) < len(runs):
            assert runs[0] is not None
            base = self._evaluation.suites.pop(runs[0].suite)
            for item in made:
                assert isinstance(item, pytest.Function)
                self._give_suite(item, base)

    def _give_suite(self, item: pytest.Function, base: Suite) -> None:
        """Make an item's run one of a suite that is named after its other parameters."""
        run = item.callspec.params["rollout"]
        assert isinstance(run, RunId)
        own = parameter_id(base.dataset.row_name(run.row_index), run.run_index)
        others = f"-{item.callspec.id}-".replace(f"-{own}-", "-", 1).strip("-")
        name = f"{run.suite}[{others}]"
        if name not in self._evaluation.suites:
            self._evaluation.add(base.renamed(name))
        item.callspec.params["rollout"] = run._replace(suite=name)

    @pytest.hookimpl
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Call an `async def` test that no other plugin calls."""
        if _ROLLOUT not in pyfuncitem.stash or not iscoroutinefunction(pyfuncitem.obj):
            return None
        names = signature(pyfuncitem.obj).parameters.keys() & pyfuncitem.funcargs.keys()
        given = {name: pyfuncitem.funcargs[name] for name in names}
        run_blocking(pyfuncitem.obj(**given))
        return True

    # ---- suites

    def _suite(self, definition: Any, marker: pytest.Mark) -> Suite:
        known = self._evaluation.suites.get(definition.nodeid)
        if known is not None:
            return known
        suite = self._prepared(definition, marker)
        if isinstance(suite, str):
            pytest.fail(f"{definition.nodeid}: {suite}", pytrace=False)
        self._agents[definition.nodeid] = marker.kwargs.get("agent")
        if marker.kwargs.get("shared", True):
            found = (each for each in self._leaders if self._are_one(suite, each))
            leader = next(found, suite)
            if leader is suite:
                self._leaders.append(suite)
            suite.info = replace(suite.info, shares=leader.spec.name)
        mistake = None
        try:
            self._evaluation.add(suite)
        except ConfigurationError as error:
            mistake = str(error)
        if mistake is not None:
            pytest.fail(mistake, pytrace=False)
        return suite

    def _are_one(self, suite: Suite, other: Suite) -> bool:
        """Whether the rollouts of a suite are those of another that was there before."""
        agent, known = (self._agents.get(each.spec.name) for each in (suite, other))
        is_equal = (isinstance(agent, str) or ismethod(agent)) and agent == known
        return (
            suite.dataset.digest == other.dataset.digest
            and replace(suite.spec, name="", pass_threshold=1.0)
            == replace(other.spec, name="", pass_threshold=1.0)
            and (agent is known or is_equal)
        )

    def _prepared(self, definition: Any, marker: pytest.Mark) -> Suite | str:
        """Return the suite, or what is wrong, in the words of the marker where it named it."""
        session = self._evaluation.spec
        assert session.defaults is not None  # an evaluation is asked for
        agent = marker.kwargs.get("agent")
        try:
            spec = self._spec(session.defaults, definition, marker)
            session = replace(session, roots=(definition.path.parent, *session.roots))
            named = None if agent is None or isinstance(agent, str | Path) else agent
            suite = prepare(spec, session, agent=named)
            return self._unreached(suite, marker) or suite
        except ConfigurationError as error:
            message = str(error)
        for name in ("agent", "data", "model"):
            if name in marker.kwargs and message.startswith(f"--osmosis-{name} "):
                return f"{_WHERE}({name}=...): {message.removeprefix(f'--osmosis-{name} ')}"
        return message

    def _unreached(self, suite: Suite, marker: pytest.Mark) -> str | None:
        """Return what is wrong with an argument that cannot reach the agent."""
        for name in ("model", "max_turns"):
            part = BY_NAME[name.replace("_", "-")].reaches
            if name in marker.kwargs and part is not None and part not in suite.agent.reach:
                return f"{_WHERE}({name}=...) {effects.unreached(suite.spec.agent, part)}"
        return None

    def _spec(self, defaults: EvalSpec, definition: Any, marker: pytest.Mark) -> EvalSpec:
        given = dict(marker.kwargs)
        if marker.args:
            raise ConfigurationError(
                f"{_WHERE} takes keyword arguments alone: agent=, data=, n=, …"
            )
        unknown = sorted(set(given).difference(_OVERRIDES))
        if unknown:
            raise ConfigurationError(
                f"{_WHERE} has no argument {unknown[0]!r}; it has {', '.join(_OVERRIDES)}"
            )
        given |= _checked_numbers(given)
        given.pop("shared", None)
        data = given.pop("data", None)
        if not isinstance(agent := given.get("agent", ""), str):
            given["agent"] = str(agent) if isinstance(agent, Path) else name_of_object(agent)
        options = OptionReader(definition.config)
        if isinstance(data, str) and data.startswith("hf:"):
            given["data"] = _of_hub(data)
        elif isinstance(data, str | os.PathLike):
            given["data"] = (definition.path.parent / Path(data)).resolve()
        elif data is not None:
            given["data"] = _written(_rows(data), definition)
        elif texts := options("data"):
            given["data"] = options.resolved("data", texts[0])
        else:
            raise ConfigurationError(f"{_WHERE} needs data=..., or --osmosis-data")
        if "model" in given:
            given["model"] = self._model(defaults.model, given["model"])
        spec = replace(defaults, name=definition.nodeid, eval_fns=(), scored_by_test=True, **given)
        if not spec.agent:
            raise ConfigurationError(f"{_WHERE} needs agent=..., or --osmosis-agent")
        return spec

    def _model(self, default: ModelSpec, name: object) -> ModelSpec:
        """Return the model that a marker names, asked where the options say, with its own key."""
        if not isinstance(name, str):
            raise ConfigurationError(
                f"{_WHERE}(model=...): expected text, such as 'openai/gpt-5-mini', "
                f"not {type(name).__name__}"
            )
        if name == default.model:
            return default
        if name not in self._models:
            key = default.api_key if default.base_url is not None else None
            named = replace(default, model=name, api_key=key)
            self._models[name] = replace(named, api_key=key_of(named))
        return self._models[name]

    # ---- runs

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Forget the conversation once the item has ended for good."""
        result = yield
        if _ROLLOUT in item.stash:
            del item.stash[_ROLLOUT]
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Fail the test of a rollout that the agent itself broke, before the asserts see it."""
        made = item.stash.get(_ROLLOUT, None)
        if made is not None and not made.record.result.success:
            pytest.fail(self._explained(made.record), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the run's result, with the outcome of the asserts, into the report that decides."""
        made = item.stash.get(_ROLLOUT, None)
        if made is not None and call.excinfo is not None:
            _leave_out_ours(call.excinfo.tb)
        report = yield
        if made is None:
            return report
        decides = report.when == "call" or (report.when == "setup" and report.failed)
        if decides:
            result, runner = _decided(made, report), self._evaluation.runner
            if runner is not None:
                runner.on_report(result.run_id, result)
            setattr(report, REPORT_FIELD, result)
            suite = self._evaluation.suites[result.suite]
            if report.failed and result.success:
                place = suite.place(result.row_index)
                said = rollout_section(made.record, suite.spec.max_turns, place)
                report.sections.insert(0, (ROLLOUT, said))
            if report.failed and suite.observes(result.row_index):
                reason = call.excinfo.exconly() if call.excinfo and result.success else None
                observe(report, result, suite.spec.pass_threshold, reason)
        if decides or report.when == "teardown":  # where JUnit looks for the output of all phases
            report.sections.extend(made.record.sections)
        return report


def _leave_out_ours(first: TracebackType) -> None:
    """End a traceback at the last frame that is not of our code: what a test called of it."""
    last, each = first, first.tb_next
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(OURS):
            last = each
        each = each.tb_next
    last.tb_next = None


def _written(rows: list[Mapping[str, Any]], definition: Any) -> Path:
    """Write rows of a marker into a file that is named by its contents, and return its path.

    Each process that collects writes the same; the one that reports reads it.
    """
    try:
        lines = [json.dumps(row, allow_nan=False) + "\n" for row in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{_WHERE}(data=...): a row is not JSON: {error}") from None
    text = "".join(lines).encode("ascii")
    folder: Path = definition.config.rootpath / OSMOSIS / "rows"
    path = folder / f"{definition.path.stem}-{hashlib.sha256(text).hexdigest()[:8]}.jsonl"
    if not path.exists():
        make_private(folder)
        write_whole(path, text, mode=0o600)
    return path


def _of_hub(text: str) -> Path:
    """Return the file of a dataset of the Hugging Face Hub; its path has the revision."""
    from ...dataset.errors import DatasetError
    from ..hub.files import local_file

    try:
        return local_file(Path(text))
    except DatasetError as error:
        raise ConfigurationError(f"{_WHERE}(data=...): {error}") from None


def _rows(data: Any) -> list[Mapping[str, Any]]:
    """Return the rows that a marker has; those without a system prompt have an empty one."""
    try:
        rows = list(data() if callable(data) else data)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - of the user's function
        if callable(data):
            told = f"{_WHERE}(data=...): the function raised\n{user_traceback(error)}"
            raise ConfigurationError(told) from None
        rows = [data]
    wrong = next((f"not {row!r}" for row in rows if not isinstance(row, Mapping)), "")
    if wrong or not rows:
        raise ConfigurationError(
            f"{_WHERE}(data=...): expected a path, rows (dicts), or a function that returns rows, "
            f"{wrong or 'and at least one row'}"
        )
    return [row if "messages" in row else {"system_prompt": "", **row} for row in rows]


def _checked_numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, held to what their options accept; a string is none."""
    checked = {}
    for name in _NUMBERS & given.keys():
        value = given[name]
        text = repr(value) if isinstance(value, str) else str(value)
        try:
            found = BY_NAME[name.replace("_", "-")].parse(text)
            checked[name] = float(found) if isinstance(found, str) else found
        except ValueError as error:
            raise ConfigurationError(f"@pytest.mark.osmosis({name}={value!r}): {error}") from None
    return checked


def _decided(made: Rollout, report: pytest.TestReport) -> RunResult:
    result = made.record.result
    if not result.success:
        return result
    scores = dict(made.scores)
    if report.skipped and not hasattr(report, "wasxfail"):
        return replace(
            result,
            scores=scores,
            error="the test was skipped",
            error_type="eval_fn",
            error_kind=SKIPPED,
        )
    scores[TEST] = 1.0 if report.passed else 0.0
    return replace(
        result,
        scores=scores,
        thresholds=dict(made.thresholds),
        reasons=dict(made.reasons),
        passed=report.passed,
    )
