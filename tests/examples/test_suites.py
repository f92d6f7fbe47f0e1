"""The suites in the shapes of other tools; `tox -e types` checks their types."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.endpoints import Endpoint

SUITES = Path(__file__).parents[2] / "examples" / "suites"


@pytest.fixture
def suites(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the suites, and sessions in it."""
    shutil.copytree(SUITES, pytester.path, dirs_exist_ok=True)
    return pytester


def test_all_that_asks_no_judge_passes_without_a_model(suites: pytest.Pytester):
    asking = "not judge and not GEval and not traced_feedback"
    result = suites.runpytest_inprocess("-k", asking, "-W", "error", "-n0")
    result.assert_outcomes(passed=50, xfailed=1, deselected=6)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_all_pass_with_a_judge(
    suites: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: int
):
    more = ["--osmosis-model=embedded"] if workers else []
    with Endpoint('{"score": 1.0, "explanation": "well said"}') as judge:
        monkeypatch.setenv("JUDGE_URL", judge.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-judge-0123456789")
        result = suites.runpytest_subprocess(f"-n{workers}", *more)
    result.assert_outcomes(passed=56, xfailed=1)
    assert judge.requests == 6
