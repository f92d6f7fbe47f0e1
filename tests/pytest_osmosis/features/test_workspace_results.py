"""The results as workspaces of Osmosis have them: figures, lines, and documents by their schema."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_osmosis.features.workspace_results.atif import trajectory
from pytest_osmosis.features.workspace_results.report import write
from pytest_osmosis.run_result import RolloutRecord, RunResult
from tests.support.endpoints import Ask, error_reply
from tests.support.made_results import result_of, suite_of
from tests.support.modes import each_mode
from tests.support.project import Project


def of(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """An object with these fields and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TEXT, COUNT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "number"}
ANYTHING = {"type": "object"}
CALL = of(
    {"tool_call_id": TEXT, "function_name": TEXT, "arguments": ANYTHING},
    *("tool_call_id", "function_name", "arguments"),
)
RESULT = of({"source_call_id": TEXT, "content": TEXT})
METRICS = of(
    {
        "prompt_tokens": COUNT,
        "completion_tokens": COUNT,
        "cached_tokens": COUNT,
        "cost_usd": NUMBER,
    }
)
ANY_STEP = {"step_id": {"type": "integer", "minimum": 1}, "message": TEXT, "extra": ANYTHING}
OBSERVATION = of({"results": {"type": "array", "items": RESULT}}, "results")
AGENT_STEP = of(
    {
        **ANY_STEP,
        "source": {"const": "agent"},
        "model_name": TEXT,
        "reasoning_content": TEXT,
        "tool_calls": {"type": "array", "items": CALL, "minItems": 1},
        "observation": OBSERVATION,
        "metrics": METRICS,
    },
    *("step_id", "source", "message"),
)
OTHER_STEP = of(
    {**ANY_STEP, "source": {"enum": ["system", "user"]}, "observation": OBSERVATION},
    *("step_id", "source", "message"),
)
ATIF = of(
    {
        "schema_version": {"type": "string", "pattern": r"^ATIF-v1\.\d+$"},
        "session_id": TEXT,
        "agent": of({"name": TEXT, "version": TEXT, "model_name": TEXT}, "name", "version"),
        "steps": {"type": "array", "items": {"oneOf": [AGENT_STEP, OTHER_STEP]}, "minItems": 1},
        "final_metrics": of(
            {
                "total_prompt_tokens": COUNT,
                "total_completion_tokens": COUNT,
                "total_cached_tokens": COUNT,
                "total_cost_usd": NUMBER,
                "total_steps": COUNT,
            }
        ),
        "extra": ANYTHING,
    },
    *("schema_version", "session_id", "agent", "steps"),
)


def check(document: dict[str, Any]) -> None:
    """By the schema, and by what no schema says: numbers without gaps, calls that there are."""
    Draft202012Validator(ATIF).validate(document)
    steps = document["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        known = [call["tool_call_id"] for call in step.get("tool_calls", ())]
        for result in step.get("observation", {"results": ()})["results"]:
            assert result.get("source_call_id") in [None, *known]


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def run() -> RunResult:
    return RunResult(suite="s", row_index=3, run_index=1, row_id=None, model="m")


ODD: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
    [{"role": "narrator", "content": "once"}, {"role": "developer", "content": "be brief"}],
    [{"role": "tool", "tool_call_id": "lost", "content": "nobody called"}],
    [
        {"role": "assistant", "content": None, "tool_calls": [call("f", "{not json"), "no call"]},
        {"role": "tool", "tool_call_id": "c1", "content": None},
        {"role": "tool", "tool_call_id": "another", "content": [{"x": 1}]},
    ],
    [{"role": "assistant", "content": "x", "tool_calls": None, "reasoning_content": "because"}],
    [{"role": "assistant", "content": "x", "tool_calls": [call("f", "[1]"), call("g", {"a": 1})]}],
    [{"role": "assistant", "tool_calls": [call("f", '{"x": NaN}'), call("g", '{"x": 1e999}')]}],
    [{"role": "assistant", "tool_calls": [call("f", "[" * 99_999), call("g", {"x": math.inf})]}],
]


@pytest.mark.parametrize("messages", ODD)
def test_every_conversation_is_a_document(messages: list[dict[str, Any]]):
    calls = [{"prompt_tokens": 3, "completion_tokens": 2, "model": "m"}]
    record = RolloutRecord(run(), messages=messages, calls=calls)
    document = trajectory(run(), record, reward=None)
    check(document)
    texts = json.dumps(document, allow_nan=False)
    for word in ("once", "nobody called", "{not json", "because", "lost"):
        assert (word in json.dumps(messages)) == (word in texts)
    counted = [step for step in document["steps"] if "metrics" in step]
    assert len(counted) + len(document["extra"]["osmosis"].get("llm_calls", ())) == 1


@each_mode
def test_figures_and_runs_are_those_of_the_report(project: Project, workers: int):
    project.rows("a", "b", "c", "d")

    def answer(ask: Ask) -> Any:
        if ask.row == "d":
            return [error_reply(400, "no")]
        return "wrong" if (ask.row, ask.attempt) == ("b", 1) else ask.row

    project.endpoint.answers = answer
    folder = project.path / "results"
    folder.mkdir()
    metrics = f"--osmosis-metrics={folder}/metrics.json"
    session = project.run("--osmosis-n=2", metrics, workers=workers)
    figures = session.report["summary"]["eval_fns"]["rewards:exact"]
    written = json.loads((folder / "metrics.json").read_text())
    summary = written["summary"]
    assert (summary["total_samples"], summary["graded"], summary["failed"]) == (8, 8, 2)
    assert summary["passed"] == 5
    assert summary["reward_stats"]["mean"] == pytest.approx(figures["mean"]) == 5 / 8
    assert summary["pass_at_k"][0]["value"] == pytest.approx(figures["pass_at_1"])
    assert written["eval_run"]["status"] == "completed"
    lines = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    assert (folder / "summary.jsonl").read_text() == (folder / "index.jsonl").read_text()
    for line in lines:
        name = f"trajectories/row_{line['row_index']}_run_{line['run_index']}.json"
        assert line["trajectory_filename"] == name
        document = json.loads((folder / name).read_text())
        check(document)
        assert document["extra"]["osmosis"]["rollout_id"] == line["rollout_id"]
        assert document["extra"]["osmosis"].get("reward") == line["reward"]
    assert len(lines) == 8
    assert "row 3 run 0: raised" in (folder / "logs.txt").read_text()


def test_the_runs_of_a_baseline_model_have_a_folder_of_their_own(tmp_path: Path):
    suite = suite_of([[1.0], [0.0]])
    other = suite_of([[0.0], [0.0]], name="data.jsonl (old)", companion_of=suite.info.name)
    result = result_of(replace(suite, companion=other))
    write(result, tmp_path / "metrics.json", lambda run: None, conversations=None)
    rates = {
        path.parent.name: json.loads(path.read_text())["summary"]["pass_rate"]
        for path in tmp_path.rglob("metrics.json")
    }
    assert rates.pop(tmp_path.name) == 0.5
    assert [*rates.values()] == [0.0]


def test_runs_that_the_endpoint_failed_are_in_no_figure(project: Project):
    project.rows("a", "b")
    project.endpoint.answers = lambda ask: ask.row if ask.row == "a" else [b"not http at all"]
    session = project.run(f"--osmosis-metrics={project.path}/metrics.json")
    assert session.report["summary"]["eval_fns"]["rewards:exact"]["mean"] == 1.0
    summary = json.loads(Path(project.path, "metrics.json").read_text())["summary"]
    assert (summary["skipped"], summary["completed_samples"], summary["pass_rate"]) == (1, 1, 1.0)
