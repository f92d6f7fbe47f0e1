"""The example of reward and rubric functions; its judge is an endpoint on loopback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import Ask, Endpoint

EXAMPLE = Path(__file__).parents[2] / "examples" / "rewards_and_rubrics"
JUDGE_KEY = "sk-judge-0123456789abcdef"


def run(pytester: pytest.Pytester, *options: str) -> tuple[Any, dict[str, Any]]:
    """A session in a copy of the example, and its report."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    result = pytester.runpytest_inprocess(
        "--osmosis-agent=agent:agent_loop",
        "--osmosis-output=out.json",
        "--batch-size=4",
        "-n0",
        *options,
    )
    return result, json.loads((pytester.path / "out.json").read_text())


def test_reward_functions_tell_right_from_close_from_wrong(pytester: pytest.Pytester):
    functions = [f"--eval-fn=rewards:{name}" for name in ("exact", "close", "short")]
    _, report = run(
        pytester, "--osmosis-data=questions.jsonl", "--osmosis-model=embedded", "--n=3", *functions
    )
    summary = report["summary"]["eval_fns"]
    assert 0 < summary["rewards:exact"]["mean"] <= summary["rewards:close"]["mean"] < 1
    assert summary["rewards:short"]["mean"] == 1.0


@pytest.mark.slow
def test_rubric_functions_ask_their_judge(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    def verdict(ask: Ask) -> str:
        return json.dumps({"score": 0.5, "explanation": "no steps are shown"})

    with Endpoint(verdict, api_key=JUDGE_KEY) as judge:
        monkeypatch.setenv("JUDGE_API_KEY", JUDGE_KEY)
        monkeypatch.setenv("JUDGE_BASE_URL", judge.base_url)
        result, report = run(
            pytester,
            "--osmosis-data=judged.jsonl",
            "--osmosis-model=embedded/perfect",
            "--pass-threshold=0.5",
            *(
                f"--eval-fn=rubrics:{name}"
                for name in ("explained", "explained_by_three", "by_row")
            ),
        )
    result.assert_outcomes(passed=2)
    assert judge.requests == 2 * (1 + 3 + 1)
    scores = [run["scores"] for row in report["rows"] for run in row["runs"]]
    assert [set(each.values()) for each in scores] == [{0.5}, {0.5}]
