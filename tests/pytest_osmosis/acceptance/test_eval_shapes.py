"""Eval functions in the shapes of other libraries, through the front door."""

from __future__ import annotations

import json

import pytest

from tests.support.modes import each_mode
from tests.support.project import KEPT, Project

GRADERS = """
def verl(data_source, solution_str, ground_truth, extra_info=None):
    return (data_source == "sums.jsonl") * (extra_info["question"] == solution_str) * 0.5

def trl(completions, level, **kwargs):
    return [(text, [number]) == ("a", [1]) for text, number in zip(completions, level)]

def langsmith(inputs, outputs, reference_outputs):
    return {"score": outputs == reference_outputs, "reason": inputs["question"]}

def get_assert(output, context):
    return output == context["vars"]["answer"], "as the row says"

def right(answer, truth):
    return answer == truth

def unclear(one, other):
    return one == other
"""
ROLES = [
    "osmosis: graders:trl: completions <- [the completion], level <- [level]",
    "osmosis: graders:langsmith: inputs <- the row, outputs <- {output: the answer}, "
    "reference_outputs <- {output: ground_truth}",
    "osmosis: graders:get_assert: output <- the answer, context <- {vars: the row}",
    "osmosis: graders:right: answer <- the answer, truth <- ground_truth",
]
NAMES = [f"graders:{name}" for name in ("verl", "trl", "langsmith", "get_assert", "right")]


@pytest.fixture
def graded(project: Project) -> Project:
    """A project of two sums whose second answer is wrong."""
    project.write("graders.py", GRADERS)
    rows = ("a", "a", 1), ("b", "c", 2)
    lines = [
        json.dumps({"question": question, "answer": answer, "level": level})
        for question, answer, level in rows
    ]
    project.write("sums.jsonl", "\n".join(lines))
    return project


@each_mode
def test_every_shape_scores_and_the_header_says_what_each_is_given(graded: Project, workers: int):
    given = [f"--osmosis-eval-fn={name}" for name in NAMES]
    session = graded.run(*given, data="sums.jsonl", eval_fn=None, workers=workers)
    wanted = [[0.5, 1.0, 1.0, 1.0, 1.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    assert [[*run["scores"].values()] for run in session.runs] == wanted
    assert session.runs[1]["reasons"]["graders:langsmith"] == "b"
    assert set(ROLES) < set(session.lines)
    kept = KEPT.replace("data", "sums")
    again = graded.plain(f"--osmosis-rescore={kept}", *given, "--osmosis-output=out.json")
    assert [[*run["scores"].values()] for run in again.runs] == wanted
    assert set(ROLES) < set(again.lines)


def test_the_wrapper_of_a_refusal_can_be_used_as_it_is(graded: Project):
    mistake = graded.run(data="sums.jsonl", eval_fn="graders:unclear").mistake
    assert mistake.startswith(
        "--osmosis-eval-fn 'graders:unclear': takes (one, other), and the names do not say"
    )
    lines = [line[4:] for line in mistake.splitlines() if line.startswith("    ")]
    graded.write("wrapped.py", "\n".join(lines))
    session = graded.run(data="sums.jsonl", eval_fn="wrapped:scored")
    assert [run["scores"]["wrapped:scored"] for run in session.runs] == [1.0, 0.0]


def test_a_column_that_no_row_has_is_refused_before_anything_is_sent(graded: Project):
    graded.write("lists.py", "def ids(completions, completion_ids): return [1.0]\n")
    session = graded.run(data="sums.jsonl", eval_fn="lists:ids")
    assert session.mistake.startswith(
        "--osmosis-eval-fn 'lists:ids': needs 'completion_ids', and no row of "
    )
    assert not graded.endpoint.requests
