"""Private names of pytest that the plugin needs, and what it does where this pytest has none.

Every function falls back to a plain public way: an evaluation ends with the same report and exit
status, at most less pretty.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

try:
    from _pytest._code.code import (
        ReprEntryNative,
        ReprExceptionInfo,
        ReprFileLocation,
        ReprTraceback,
    )
except ImportError:
    ReprExceptionInfo = None  # type: ignore[assignment,misc]
try:
    from _pytest import junitxml

    xml_key: Any = junitxml.xml_key
except (ImportError, AttributeError):
    xml_key = None
try:
    from _pytest.terminal import TerminalReporter
except ImportError:
    TerminalReporter = None  # type: ignore[assignment,misc]
try:
    from _pytest.mark import expression as expressions

    Expression: Any = expressions.Expression
    _malformed: tuple[Any, ...] = (SyntaxError, getattr(expressions, "ParseError", SyntaxError))
except (ImportError, AttributeError):
    Expression = None
    _malformed = (SyntaxError,)
try:
    from _pytest import warnings

    catch_warnings_for_item: Any = warnings.catch_warnings_for_item
except (ImportError, AttributeError):
    catch_warnings_for_item = None
try:
    from _pytest.config import findpaths

    determine_setup: Any = findpaths.determine_setup
except (ImportError, AttributeError):
    determine_setup = None
try:
    from _pytest.nodeid import NodeId
except ImportError:  # before pytest 9.2
    NodeId = None  # type: ignore[assignment,misc]

ATTRIBUTES = (
    "_groups",
    "_anonymous",
    "_setupstate",
    "_update_current_test_var",
    "_keyboardinterrupt_memo",
    "_global_capturing",
    "syscapture",
    "tmpfile",
    "_old",
    "caplog_handler",
    "report_handler",
    "log_cli_handler",
    "log_file_handler",
    "log_level",
    "formatter",
    "stats",
    "_file",
    "_inicfg",
    "evaluate_skip_marks",
    "evaluate_xfail_marks",
    "remove_mods",
)
"""The private attributes of pytest's objects that are looked up here."""


def _attribute(owner: object, name: str) -> Any:
    """Return a private attribute of an object of pytest; None where there is none."""
    return getattr(owner, name, None)


def _plugin(config: pytest.Config, name: str) -> Any:
    return config.pluginmanager.get_plugin(name)


# ---- the ini file


def ini_value(config: pytest.Config, name: str, *, is_list: bool) -> Any:
    """Return the value of an ini key; in `[tool.pytest]` a number needs no quotes there.

    A single text stands for a list of one. Without the private name, pytest's own types hold.
    """
    try:
        return config.getini(name)
    except (TypeError, ValueError, pytest.UsageError):
        given = getattr((_attribute(config, "_inicfg") or {}).get(name), "value", None)
        if type(given) in (int, float):
            return [str(given)] if is_list else str(given)
        if is_list and isinstance(given, str):
            return [given]
        raise


def ini_keys(config: pytest.Config) -> Collection[str]:
    """Return the keys of the ini file, known or not; none where pytest does not say.

    Before pytest 9 the attribute has no underscore; under that name it is deprecated since.
    """
    old = pytest.version_tuple < (9,)
    return list(_attribute(config, "inicfg" if old else "_inicfg") or ())


def root_of(
    config: pytest.Config, parser: pytest.Parser, words: Sequence[str], arguments: Sequence[str]
) -> tuple[Path, Path | None]:
    """Return rootdir and ini file of a session with these words, and these paths among them.

    Without the private name those of this session.
    """
    if determine_setup is None:
        return config.rootpath, config.inipath
    known = parser.parse_known_args(words)
    given = {
        "inifile": known.inifilename,
        "override_ini": known.override_ini,
        "args": arguments,
        "rootdir_cmd_arg": known.rootdir or None,
        "invocation_dir": config.invocation_params.dir,
    }
    names = signature(determine_setup).parameters
    found = determine_setup(**{name: given[name] for name in names})
    return found[0], found[1]


# ---- markers


def is_skipped(item: pytest.Item) -> bool:
    """Return whether pytest will skip an item because of its markers.

    Without the private names `skip` alone is known: what other markers skip is run all the same.
    """
    plugin = _plugin(item.config, "skipping")
    if plugin is None or item.get_closest_marker("skip") is not None:
        return plugin is not None
    skip, xfail = (_attribute(plugin, f"evaluate_{name}_marks") for name in ("skip", "xfail"))
    try:
        if skip is not None and skip(item) is not None:
            return True
        expected = None if xfail is None else xfail(item)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - in a condition: its item fails
        return True
    return expected is not None and not (expected.run or item.config.option.runxfail)


# ---- warnings


def recorded_warnings(config: pytest.Config) -> AbstractContextManager[None]:
    """Return what puts warnings into pytest's summary, by its filters, while no item runs."""
    if catch_warnings_for_item is None or _plugin(config, "warnings") is None:
        return nullcontext()
    recorded: AbstractContextManager[None] = catch_warnings_for_item(
        config=config, ihook=config.hook, when="runtest", item=None
    )
    return recorded


# ---- reports of items


def hooks_without(
    hooks: Any, manager: pytest.PytestPluginManager, plugins: Iterable[object]
) -> Any:
    """Return an item's hooks for its start and finish, without what some plugins implement.

    Without the private name the conftest.py files of other folders hear of them too.
    """
    names = "pytest_runtest_logstart", "pytest_runtest_logfinish"
    left_out = [*plugins, *(_attribute(hooks, "remove_mods") or ())]
    return SimpleNamespace(**{name: manager.subset_hook_caller(name, left_out) for name in names})


def failure_section(compose: Callable[[], str], *, path: str, line: str, lineno: int = 0) -> Any:
    """Return the `longrepr` of a failed run; `line` is for the short summary.

    `lineno`: where in the file, from 1; 0 where it is not known.

    Its text is composed when it is first shown. Without pytest's classes it is the text alone, and
    the short summary names the item only.
    """
    if ReprExceptionInfo is None:
        return compose()
    return _FailureSection(compose, ReprFileLocation(path=path, lineno=lineno, message=line))


def is_failure_section(longrepr: object) -> bool:
    """Return whether a `longrepr` is one that `failure_section` made."""
    return ReprExceptionInfo is not None and isinstance(longrepr, _FailureSection)


if ReprExceptionInfo is not None:

    class _FailureSection(ReprExceptionInfo):
        """A text in the place of a traceback."""

        def __init__(self, compose: Callable[[], str], crash: ReprFileLocation) -> None:
            self._compose = compose
            self.reprcrash = crash
            self.sections = []

        @cached_property
        def reprtraceback(self) -> ReprTraceback:  # type: ignore[override]
            """The text."""
            entry = ReprEntryNative([self._compose() + "\n"])
            return ReprTraceback([entry], extraline=None, style="native")


def can_tear_down(config: pytest.Config) -> bool:
    """Return whether `tear_down_before` can do its work; else items are left to pytest."""
    return hasattr(_attribute(_plugin(config, "session"), "_setupstate"), "teardown_exact")


def tear_down_before(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tear down what an earlier item has set up and the next one does not need."""
    state = _attribute(item.session, "_setupstate")
    if getattr(state, "stack", None):
        state.teardown_exact(nextitem)


def keep_current_test(config: pytest.Config) -> Callable[[], None]:
    """Have `PYTEST_CURRENT_TEST` stay in the environment between items; return what ends that.

    Pytest removes it after each. Rollouts in other threads that go through `os.environ` at that
    moment, as HTTP clients do for proxies, fail with a KeyError.
    """
    runner, name = _plugin(config, "runner"), "_update_current_test_var"
    update = _attribute(runner, name)
    if update is None:
        return lambda: None

    def kept(item: pytest.Item, when: str | None) -> None:
        if when is not None:
            update(item, when)

    def restore() -> None:
        setattr(runner, name, update)
        os.environ.pop("PYTEST_CURRENT_TEST", None)

    setattr(runner, name, kept)
    return restore


# ---- options


def option_names(parser: pytest.Parser) -> set[str] | None:
    """Return the names of all options so far: pytest refuses to add one twice.

    None where they are not known: then no short spelling is added.
    """
    groups, anonymous = _attribute(parser, "_groups"), _attribute(parser, "_anonymous")
    if groups is None or anonymous is None:
        return None
    return {
        name
        for group in (*groups, anonymous)
        for option in group.options
        for name in option.names()
    }


# ---- what `-m` and `-k` select


def evaluate(expression: str, matches: Callable[[str], bool]) -> bool:
    """Return the value of an expression of `-m` or `-k`, of which `matches` knows the words.

    True where its value is not known: pytest itself selects items.

    Raises:
        pytest.UsageError: when it is none.
    """
    if Expression is None:
        return True
    try:
        compiled = Expression.compile(expression)
    except _malformed as error:
        raise pytest.UsageError(f"wrong expression {expression!r}: {error}") from None

    def matcher(word: str, /, **_: object) -> bool:
        return matches(word)

    return bool(compiled.evaluate(matcher))


# ---- the terminal


def is_own_terminal(reporter: object) -> bool:
    """Return whether pytest's own class writes to the terminal; False where it is not known."""
    return TerminalReporter is not None and type(reporter) is TerminalReporter


def encoding_of(writer: object) -> str:
    """Return the encoding of the file that pytest's terminal is; UTF-8 where it is not known."""
    return getattr(_attribute(writer, "_file"), "encoding", None) or "utf-8"


def reports_by_status(terminal: object) -> dict[str, list[Any]]:
    """Return the reports that the terminal counts and shows, by status; the terminal's own."""
    found: dict[str, list[Any]] = _attribute(terminal, "stats") or {}
    return found


def say_interrupted(config: pytest.Config, message: str) -> None:
    """Have the terminal print this of an interrupt; else it names the place of our handler."""
    memo = _attribute(_plugin(config, "terminalreporter"), "_keyboardinterrupt_memo")
    if memo is not None and not config.option.fulltrace:
        memo.reprcrash.message = message


# ---- JUnit


def junit_property(config: pytest.Config, name: str, value: object) -> None:
    """Add a property of the whole session to the JUnit report; without the key it has none."""
    xml = None if xml_key is None else config.stash.get(xml_key, None)
    if xml is not None:
        xml.add_global_property(name, value)


def name_in_junit(config: pytest.Config, nodeid: str, name: str) -> None:
    """Give a test another name in JUnit than the end of its node id."""
    xml = None if xml_key is None else config.stash.get(xml_key, None)
    if xml is not None:
        xml.node_reporter(nodeid).add_attribute("name", name)


def properties_in_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """Give JUnit the properties of a crashed item: it reads them when a teardown is reported."""
    xml = None if xml_key is None else config.stash.get(xml_key, None)
    if xml is not None:
        for name, value in report.user_properties:
            xml.node_reporter(report).add_property(name, str(value))


def forget_in_junit(config: pytest.Config, worker: object) -> None:
    """Take out of JUnit what a lost worker began to report: a case that would have no name."""
    xml = None if xml_key is None else config.stash.get(xml_key, None)
    if xml is None:
        return
    opened = xml.node_reporters
    for key in [key for key, case in opened.items() if key[1] is worker and not case.attrs]:
        xml.node_reporters_ordered.remove(opened.pop(key))


def node_id(item: pytest.Item) -> Any:
    """Return the id of an item for its report: parsed already, where pytest keeps it so."""
    found = getattr(item, "id", None)
    return found if NodeId is not None and isinstance(found, NodeId) else item.nodeid


# ---- captured output


def captured_streams(config: pytest.Config) -> list[tuple[Any, str]]:
    """Return the streams that programs write to, with "stdout" or "stderr".

    The real streams, and those that pytest puts in their place while it captures; without the
    attributes what a rollout prints belongs to the item that pytest is at.
    """
    found = [(sys.stdout, "stdout"), (sys.stderr, "stderr")]
    capturing = _attribute(_plugin(config, "capturemanager"), "_global_capturing")
    for kind, name in (("stdout", "out"), ("stderr", "err")):
        part = _attribute(capturing, name)
        part = _attribute(part, "syscapture") or part
        found += [(_attribute(part, attribute), kind) for attribute in ("tmpfile", "_old")]
    unique = {id(stream): (stream, kind) for stream, kind in found if hasattr(stream, "write")}
    return list(unique.values())


def log_handlers(config: pytest.Config) -> list[logging.Handler]:
    """Return the handlers of pytest's logging plugin, those that fill reports first."""
    plugin = _plugin(config, "logging-plugin")
    names = ("caplog_handler", "report_handler", "log_cli_handler", "log_file_handler")
    found = (_attribute(plugin, name) for name in names)
    return [handler for handler in found if isinstance(handler, logging.Handler)]


def log_settings(config: pytest.Config) -> tuple[int, logging.Formatter | None]:
    """Return the level and the formatter of the log sections of reports."""
    plugin = _plugin(config, "logging-plugin")
    return _attribute(plugin, "log_level") or 0, _attribute(plugin, "formatter")
