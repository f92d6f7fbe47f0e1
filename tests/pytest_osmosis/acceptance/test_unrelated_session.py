"""A session in which no evaluation is asked for: the plugin costs nothing and does nothing."""

from __future__ import annotations

import pytest

from pytest_osmosis.features.table import FEATURES

HEAVY = (
    *("litellm", "pydantic", "pyarrow", "numpy", "httpx", "aiohttp", "asyncio", "httptools"),
    *("concurrent.futures", "http.client", "ssl", "click"),
)
OURS = (
    *("plugin", "options", "options.reader", "options.registration"),
    *("options.table", "options.values", "compat", "hookspecs"),
    *("dataset", "dataset.formats", "reports", "reports.formats"),
    *("analysis", "analysis.gates", "analysis.gates.names"),
    *("features", "features.table"),
    *("features.marked_functions.collecting", "items", "items.decorator"),
    *("session", "session.current"),
    *(f"features.{each.name}" for each in FEATURES),
)
"""Formats, and the names that gates use, are tables without imports of ours."""

TELLS_MODULES = """
import sys


def pytest_unconfigure(config):
    with open("modules.txt", "w") as file:
        print(*sorted(sys.modules), sep="\\n", file=file)
"""

TEST = """
def test_nothing():
    pass


def test_with_a_fixture(tmp_path):
    assert tmp_path.is_dir()
"""


@pytest.fixture
def plain(pytester: pytest.Pytester) -> pytest.Pytester:
    """A directory of ordinary tests."""
    pytester.makepyfile(test_it=TEST)
    pytester.path.joinpath("data.jsonl").write_text("not even JSON")
    return pytester


def modules(pytester: pytest.Pytester, *args: str) -> set[str]:
    """What a session of ordinary tests has imported when it ends."""
    pytester.makeconftest(TELLS_MODULES)
    result = pytester.runpytest_subprocess(*args)
    result.assert_outcomes(passed=2)
    return set((pytester.path / "modules.txt").read_text().split())


@pytest.mark.fault("ordinary tests, and no evaluation")
def test_nothing_heavy_is_imported_and_no_more_than_the_plugin(plain: pytest.Pytester):
    args = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio")
    without = modules(plain, *args, "-p", "no:osmosis")
    loaded = modules(plain, *args) - without
    assert not loaded.intersection(HEAVY)
    ours = {name for name in loaded if name.startswith(("pytest_osmosis", "osmosis_ai"))}
    assert ours == {"pytest_osmosis", *(f"pytest_osmosis.{name}" for name in OURS)}
    assert loaded == ours


@pytest.mark.fault("ordinary tests, and no evaluation")
@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-Werror"],
        ["-p", "no:osmosis"],
        pytest.param(["-n2"], marks=pytest.mark.slow),
        ["-p", "no:xdist"],
    ],
    ids=str,
)
def test_ordinary_tests_are_left_alone(plain: pytest.Pytester, args: list[str]):
    result = plain.runpytest_inprocess(*args)
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    assert "osmosis: " not in result.stdout.str()
    assert "osmosis summary" not in result.stdout.str()


@pytest.mark.fault(
    "`--import-mode=importlib`, the plugin named twice, plugins not loading themselves"
)
@pytest.mark.slow
def test_it_can_be_loaded_by_name_where_plugins_do_not_load_themselves(
    plain: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = plain.runpytest_subprocess("-p", "osmosis", "-p", "osmosis", "--osmosis-n=2")
    result.assert_outcomes(passed=2)


@pytest.mark.slow
def test_its_marker_and_options_are_reported(plain: pytest.Pytester):
    plain.runpytest_inprocess("--markers").stdout.fnmatch_lines(["*(agent, data, n,*max_turns)*"])
    plain.runpytest_inprocess("--help").stdout.fnmatch_lines(["osmosis: evaluate LLM agents*"])
