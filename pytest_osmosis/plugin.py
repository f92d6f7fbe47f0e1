"""The pytest plugin: every hook it implements, in the order in which a session calls them.

Each delegates. Nothing happens, and nothing heavy is imported, until an evaluation is asked for.
What runs an item is registered with the first of them: `items/runner.py`. The hooks of xdist are in
`distributed/controller.py`.
(PYTEST_DONT_REWRITE: what is imported before its hooks.)
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .features.table import SPELLINGS, change_arguments, load_early
from .options import reader, registration
from .session.current import BEGIN, EVALUATION, evaluation_of

if TYPE_CHECKING:
    from .session.evaluation import Evaluation
    from .spec import SessionSpec

_OURS = ("pytest_osmosis", "osmosis_ai", "osmosis_cli", "osmosis_executors", "osmosis_platform")
_EARLY = pytest.StashKey[list[str]]()
"""Lines of the header by features that acted before the session began."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Canonical options and ini keys."""
    registration.register(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """The hooks that users may implement."""
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)
    # pytest would parse each module of ours to rewrite its asserts: on Python 3.11 that fails with
    # a SystemError while another thread parses one too, as an agent does that imports a plugin.
    rewritten: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set())
    rewritten.difference_update(_OURS)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """What features do before any conftest.py; short spellings, and mistyped names, last."""
    if any(word in SPELLINGS or word.startswith("@") for word in map(str, args)):
        from .options import separate_values

        separate_values.check(early_config, parser)
    early_config.stash[BEGIN] = _begin
    early_config.stash[reader.PLAN] = _plan
    early_config.stash[_EARLY] = load_early(early_config)
    for at, word in enumerate(args[1:]):
        if args[at] == "--osmosis-rows" and str(word).startswith("@"):  # else a file of options
            args[at : at + 2] = [f"--osmosis-rows={word}"]
            break
    yield
    registration.register_short(parser)
    if any(str(word).startswith("--osmosis-") for word in args):
        registration.check_options(parser, args)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """Before xdist reads its options: what features make of the arguments, and how many workers."""
    change_arguments(config)
    is_ours = reader.named(config)
    if is_ours:
        from .session.selection import selection_of

        if selection_of(config) != "nothing":
            from .evaluation import choose_processes

            choose_processes(config)
    status = yield
    is_shown = config.pluginmanager.has_plugin("terminalreporter")
    if is_ours and not is_shown and status == pytest.ExitCode.INTERRUPTED:
        sys.stderr.write("interrupted\n")
    return status


def pytest_configure(config: pytest.Config) -> None:
    """Set the evaluation up, if options or ini ask for one."""
    if any("[run-" in text for text in config.args):
        from .session import named_runs

        named_runs.check(config)
    if reader.named(config):
        from .session.selection import selection_of

        if selection_of(config) != "nothing":
            _set_up(config).narrow_arguments()
        elif config.args_source is not config.ArgsSource.ARGS:
            registration.check_keys(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Read rows, import code, check keys and outputs: all before any worker or request."""
    evaluation = evaluation_of(session.config)
    if evaluation is not None:
        evaluation.start()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is evaluated, and how."""
    evaluation = evaluation_of(config)
    lines = config.stash.get(_EARLY, [])
    return lines if evaluation is None else [*lines, *evaluation.header()]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A data file that an evaluation names."""
    evaluation = evaluation_of(parent.config)
    return None if evaluation is None else evaluation.collector_for(file_path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Items are known, in the process that collects them."""
    evaluation = evaluation_of(session.config)
    if evaluation is not None:
        from .items.runner import deselect_repeated

        deselect_repeated(session.config, session.items)
        evaluation.collected(session.items)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """The plan: rows x runs x eval functions."""
    evaluation = evaluation_of(config)
    return [] if evaluation is None else evaluation.plan()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start the first rollouts: items are known and about to run.

    Rollouts also run between two items: what they warn of then is recorded, or raised, too.
    """
    evaluation = evaluation_of(session.config)
    if evaluation is None:
        return (yield)
    from .session.rare_collection import collected_rarely

    with collected_rarely(session.config, session.items):
        evaluation.begin(session.items)
    if evaluation.runner is None:
        return (yield)
    from . import compat

    with compat.recorded_warnings(session.config):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    """Put the run's own time, output and result into pytest's reports of it, and no secret."""
    report: pytest.TestReport = yield
    evaluation = evaluation_of(item.config)
    if evaluation is not None:
        from .items.collection import RunItem
        from .items.protocol import complete_report
        from .items.redaction import redact_report

        if isinstance(item, RunItem):
            complete_report(item, report, evaluation.sections)
        redact_report(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, Any, pytest.CollectReport]:
    """No secret in what a module prints or raises when it is imported."""
    report: pytest.CollectReport = yield
    evaluation = evaluation_of(collector.config)
    if evaluation is not None and (report.failed or report.sections):
        from .items.redaction import redact_report

        redact_report(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(
    session: pytest.Session, exitstatus: int
) -> Generator[None, object, object]:
    """Cancel what is in flight: no item waits for it. After an interrupt, workers do so first."""
    evaluation = evaluation_of(session.config)
    if evaluation is None:
        if exitstatus == pytest.ExitCode.OK and _idle_gate(session.config):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        return (yield)
    try:
        evaluation.check_interrupted_again()
        if exitstatus == pytest.ExitCode.INTERRUPTED or evaluation.runner is not None:
            evaluation.cancel()
        evaluation.close_runs(session)
        result = yield
        evaluation.check_interrupted_again()
        evaluation.end(session)
        evaluation.close()
        evaluation.check_interrupted_again()
    except KeyboardInterrupt:
        evaluation.abandon()
        pytest.exit("interrupted again", returncode=pytest.ExitCode.INTERRUPTED)
    return result


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """A gate that decided on nothing; what an agent in the ini file lacks, where nothing ran."""
    if gate := _idle_gate(config):
        hint = "no evaluation ran: name data or mark a test, or leave the gate out"
        terminalreporter.write_line(f"ERROR: --osmosis-gate {gate!r} decided on nothing: {hint}")
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and evaluation_of(config) is None:
        given = reader.OptionReader(config)
        if given.raw("agent") is not None and given.raw("data") is None:
            hint = 'add osmosis_data = "questions.jsonl" to the ini file, or mark a test: @osmosis'
            terminalreporter.write_line(f"osmosis: an agent alone evaluates nothing: {hint}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """The same when a session ended before it began; and nothing holds the user's code longer."""
    evaluation = evaluation_of(config)
    if evaluation is not None:
        evaluation.close()
        evaluation.release()
        del config.stash[EVALUATION]


def _set_up(config: pytest.Config) -> Evaluation:
    # The evaluation registers the recorder and the gates, which have hooks too.
    from .evaluation import evaluation_for

    registration.check_keys(config)
    evaluation = evaluation_for(config)
    config.stash[EVALUATION] = evaluation
    for name, plugin in evaluation.plugins().items():
        config.pluginmanager.register(plugin, name)
    return evaluation


def _idle_gate(config: pytest.Config) -> str | None:
    """Return the first gate that was typed in a session that evaluates nothing, if any."""
    is_asked = evaluation_of(config) is None and not hasattr(config, "workerinput")
    typed = any(str(word).startswith("--osmosis-gate") for word in config.invocation_params.args)
    if not (is_asked and typed) or config.option.collectonly:
        return None
    return str(reader.OptionReader(config).raw("gate")[0])


def _begin(config: pytest.Config) -> None:
    """Begin an evaluation while tests are collected."""
    evaluation = _set_up(config)
    evaluation.choose_gated()
    evaluation.start()


def _plan(config: pytest.Config) -> SessionSpec:
    from .evaluation import plan

    return plan(config)
