"""What every test shares: pytester, a clean environment, and an end to a test that hangs.

Sessions under test run in this process where they can. Since pytester forgets the modules that such
a session has imported, and some cannot be imported twice, all that the plugin may need is imported
first, in each process that runs tests.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings
from xdist import is_xdist_worker
from xdist.scheduler import LoadFileScheduling, LoadGroupScheduling, Scheduling

from osmosis_ai.secret import Redactor
from tests.support.endpoints import Endpoint

gc.disable()  # what is imported for the tests stays; `pytest_collection_finish` enables it

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

BYTECODE = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
"""What tests and sessions under test import in common, compiled, where Python should write none."""

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # until all is imported, also by workers
    sys.dont_write_bytecode, sys.pycache_prefix = False, BYTECODE
    os.environ["PYTHONPYCACHEPREFIX"] = BYTECODE

pytest_plugins = [
    "pytester",
    "tests.support.fake_platform",
    "tests.support.platform_database",
    "tests.support.platform_server",
]

FOREIGN = ("OSMOSIS_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "LITELLM_", "PYTEST_XDIST_", "GITHUB_")
"""Prefixes of variables that would change what a session under test does."""

TERMINAL = {"CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS"}
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}

IMPORT_LITELLM = (
    "test_files_of_functions.py",
    "test_litellm_client.py",
    "test_litellm_end_to_end.py",
    "test_litellm_model.py",
    "osmosis_ai/test_recorded_calls.py",
    "test_rewards_and_rubrics.py",
    "osmosis_ai/test_scorers.py",
    "pages/test_benchmarks_page.py",
    "test_workflows.py",
    "bridge/test_server.py",
    "rubric/test_command.py",
    "rubric/test_evaluation.py",
)
"""Files whose tests import LiteLLM or its OpenAI SDK in this process, which takes seconds."""

AUTHORITY = Path(__file__).parent / "support/certificates/nobody.pem"
"""The certificate of an authority that has signed nothing."""

HANGING_S = 600
"""No test takes nearly as long, on a machine that has ten times as much to do either."""

settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the oldest versions are tested with."""
    parser.addoption(
        "--ends-of-tables",
        action="store_true",
        help="of each parametrised test, run the first and the last example",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what stands between the first and the last example that `-m` and `-k` select."""
    if not config.getoption("--ends-of-tables"):
        return
    tables = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        tables[item.nodeid.partition("[")[0]].append(item)
    left_out = {item for table in tables.values() for item in table[1:-1]}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import what the tests share, unless this process only hands them to workers."""
    if session.config.getoption("dist", "no") != "no" and not is_xdist_worker(session):
        gc.enable()
        return
    import httpcore  # noqa: F401  httpx imports it late, and remembers its exceptions
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pydantic

    import osmosis_ai
    import pytest_osmosis

    # The first takes the discovery of plugins over, for good; a LiteLLM that finds it imports it.
    # The second is to newer versions of huggingface_hub what httpcore is to httpx.
    for name in ("importlib_metadata", "httpcore2"):
        with suppress(ModuleNotFoundError):
            import_module(name)
    for package in (osmosis_ai, pytest_osmosis):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ModuleNotFoundError):  # of an extra that is not installed
                import_module(module.name)
    for name in pydantic.__all__:  # loaded when first used; LiteLLM uses more of them than we do
        getattr(pydantic, name)


def slow_import(nodeid: str) -> str | None:
    """Return what the tests of a file import, where that takes seconds."""
    return "litellm" if nodeid.partition("::")[0].endswith(IMPORT_LITELLM) else None


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Files go to workers in the order of collection; those that share a slow import go to one."""

    def _split_scope(self, nodeid: str) -> str:
        return slow_import(nodeid) or str(super()._split_scope(nodeid))


class ByTest(LoadGroupScheduling):  # type: ignore[misc]
    """Tests go to workers one at a time; those that share a slow import go to one."""

    def _split_scope(self, nodeid: str) -> str:
        return slow_import(nodeid) or str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start more workers than cores: a third of the time tests wait for sockets and processes."""
    return 3 * (os.cpu_count() or 2) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Share what a file's fixtures make among all of its tests, and slow imports in any case."""
    if config.getoption("dist") == "loadgroup":
        return ByTest(config, log)
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # light files are collected last
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """Take all that was imported for the tests out of every later garbage collection.

    Bytecode is written no more: a test may change a module twice within a second.
    """
    if os.environ.get("PYTHONPYCACHEPREFIX") == BYTECODE:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint that repeats the question, unless the test says otherwise."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> Iterator[None]:
    """Keep keys, proxies and terminal settings of the machine out of the tests.

    One authority is trusted instead of all that there are: each client of `httpx` loads them anew.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in list(os.environ):
            if name.startswith(FOREIGN) or name in TERMINAL or name.upper() in PROXIES:
                monkeypatch.delenv(name)
        monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
        yield


class Installed:
    """A distribution whose lists of entry points and files are read once."""

    def __init__(self, distribution: metadata.Distribution) -> None:
        self.distribution = distribution

    @cached_property
    def entry_points(self) -> Any:
        return self.distribution.entry_points

    @cached_property
    def files(self) -> Any:
        return self.distribution.files

    def __getattr__(self, name: str) -> Any:
        return getattr(self.distribution, name)


@pytest.fixture(autouse=True, scope="session")
def installed() -> Iterator[None]:
    """Look once at what is installed: pytest and pluggy do it in each session, a third of its time.

    What is on another path is looked at anew.
    """
    look, known = metadata.distributions, dict[tuple[str, ...], list[Installed]]()

    def distributions(**context: Any) -> Iterable[Any]:
        if context:
            return look(**context)
        path = tuple(sys.path)
        if path not in known:
            known[path] = [Installed(distribution) for distribution in look()]
        return known[path]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(metadata, "distributions", distributions)
        yield


@pytest.fixture(autouse=True, scope="module")
def litellm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Import LiteLLM once for all files that need it, before pytester, which forgets imports.

    Its unfinished coroutines are collected here, not in a later session that makes them errors.
    """
    if not request.path.as_posix().endswith(IMPORT_LITELLM):
        yield
        return
    from osmosis_ai.models.litellm.library import load

    gc.disable()
    load()
    gc.enable()
    yield
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
        gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def modules_of_projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that commands in this process have imported from a test's project.

    A later file's project may have another module of that name.
    """
    before = set(sys.modules)
    yield
    projects = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(projects):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def keys_of_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the keys that judges of earlier tests had: later texts may hold pieces of them."""
    monkeypatch.setattr("osmosis_ai.secret._everywhere", Redactor())


@pytest.fixture(autouse=True)
def handlers_of_logs() -> Iterator[None]:
    """Remove the handler that a server's command in this process has put on the root logger.

    It would write what later tests log to the closed stderr of an earlier one.
    """
    level = logging.root.level
    yield
    logging.root.setLevel(level)
    for handler in list(logging.root.handlers):
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)


@contextmanager
def patience() -> Iterator[None]:
    """Fail what hangs, again and again until it lets go."""

    def fail(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"still running after {HANGING_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, HANGING_S, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test that hangs; not while pytest reports it, which would end the whole session."""
    with patience():
        return (yield)


pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call
