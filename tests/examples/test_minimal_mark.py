"""The example of marked tests, as its README runs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.modes import each_mode

EXAMPLE = Path(__file__).parents[2] / "examples" / "minimal_mark"


@pytest.fixture
def example(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the example, and a session in it."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    return pytester


@each_mode
def test_each_row_and_run_is_a_test(example: pytest.Pytester, workers: int):
    result = example.runpytest_inprocess(
        "--strict-markers", "-W", "error", "--osmosis-model", "embedded/perfect", f"-n{workers}"
    )
    result.assert_outcomes(passed=5 * 3 + 5)
    assert result.ret == 0


@pytest.mark.slow
def test_the_tests_own_asserts_decide(example: pytest.Pytester):
    result = example.runpytest_inprocess("--osmosis-model", "embedded/broken")
    result.assert_outcomes(passed=5, failed=5 * 3)
    result.stdout.fnmatch_lines(["*assert number == pytest.approx(truth, rel=tolerance)"])
    assert result.ret == 1
