"""The examples of agents with a client of their own, as their READMEs run them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.modes import each_mode

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(pytester: pytest.Pytester, name: str, *options: str) -> tuple[Any, dict[str, Any]]:
    """A session in a copy of an example, and its report."""
    shutil.copytree(EXAMPLES / name, pytester.path, dirs_exist_ok=True)
    result = pytester.runpytest_inprocess(
        "--osmosis-data=questions.jsonl", "--osmosis-output=out.json", "--batch-size=4", *options
    )
    return result, json.loads((pytester.path / "out.json").read_text())


@pytest.mark.slow
@each_mode
def test_a_workflow_is_graded_on_its_last_answer(pytester: pytest.Pytester, workers: int):
    result, report = run(
        pytester, "workflow", "--osmosis-agent=main.py:CheckedAnswer",
        "--osmosis-model=embedded/perfect", "--n=3", f"-n{workers}",
    )  # fmt: skip
    result.assert_outcomes(passed=15)
    assert report["config"]["eval_fns"] == ["reward"]
    assert {run["llm_calls"] for row in report["rows"] for run in row["runs"]} == {2}


@pytest.mark.slow
def test_a_model_that_errs_gets_half_for_an_answer_that_was_right(
    pytester: pytest.Pytester,
):
    _, report = run(
        pytester, "workflow", "--osmosis-agent=main.py:CheckedAnswer",
        "--osmosis-model=embedded/sloppy", "--n=5", "-n0",
    )  # fmt: skip
    rewards = {run["scores"]["reward"] for row in report["rows"] for run in row["runs"]}
    assert rewards <= {0.0, 0.5, 1.0} and len(rewards) > 1


@pytest.mark.slow
@each_mode
def test_an_agent_with_openais_client_calls_its_tools(pytester: pytest.Pytester, workers: int):
    result, report = run(
        pytester, "openai_client", "--osmosis-agent=agent.py:Agent", "--eval-fn=agent.py:right",
        "--osmosis-model=embedded/perfect", "-W", "error", f"-n{workers}",
    )  # fmt: skip
    result.assert_outcomes(passed=5)
    runs = [run for row in report["rows"] for run in row["runs"]]
    assert all(run["tokens"] > 0 and run["llm_calls"] >= 1 for run in runs)
    assert sum(run["tool_calls"] for run in runs) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        f"cmd:{sys.executable} agent.py",
        pytest.param(
            "cmd:node agent.js",
            marks=pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js"),
        ),
    ],
    ids=["python", "node"],
)
def test_a_program_answers(pytester: pytest.Pytester, command: str):
    result, report = run(
        pytester, "command_agent", f"--osmosis-agent={command}", "--eval-fn=rewards:right",
        "--osmosis-model=embedded/perfect", "-n0",
    )  # fmt: skip
    result.assert_outcomes(passed=5)
    assert report["summary"]["total_tokens"] > 0
