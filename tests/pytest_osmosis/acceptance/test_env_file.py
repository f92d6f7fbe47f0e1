"""`--osmosis-env-file`: variables for a whole pytest session, and only for it."""

from __future__ import annotations

import os

import pytest

SECRET = "sk-not-to-be-seen-anywhere"


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OSMOSIS_TOKEN", raising=False)
    pytester.path.joinpath("x.env").write_text(f"SOME_API_KEY={SECRET}\nOSMOSIS_TOKEN={SECRET}\n")
    pytester.makeconftest("import os\nSEEN = os.environ.get('SOME_API_KEY')\n")
    pytester.makepyfile(
        "import os\nimport conftest\n"
        "def test_it(): assert conftest.SEEN == os.environ['SOME_API_KEY']\n"
    )


def test_a_named_file_is_read_before_any_conftest_and_undone(pytester: pytest.Pytester):
    result = pytester.runpytest_inprocess("--osmosis-env-file", "x.env")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["osmosis: x.env sets SOME_API_KEY, OSMOSIS_TOKEN"])
    assert SECRET not in result.stdout.str()
    assert not {"SOME_API_KEY", "OSMOSIS_TOKEN"} & os.environ.keys()


def test_a_file_that_the_ini_file_names_sets_no_login(pytester: pytest.Pytester):
    pytester.makeini("[pytest]\nosmosis_env_file = x.env\n")
    result = pytester.runpytest_inprocess()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["osmosis: x.env sets SOME_API_KEY, ignores OSMOSIS_TOKEN, which*"])


@pytest.mark.slow
def test_no_other_session_reads_one(pytester: pytest.Pytester):
    pytester.path.joinpath("x.env").rename(pytester.path / ".env")
    assert pytester.runpytest_inprocess("-q").ret == 1


def test_a_file_that_is_not_there_is_wrong_use(pytester: pytest.Pytester):
    result = pytester.runpytest_inprocess("--osmosis-env-file", "gone")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: --osmosis-env-file: gone cannot be read: No such file or directory"]
    )
