"""The outcome of a run, and the one table of what an outcome looks like."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from pytest_osmosis.features.html.page_assets import script, style
from pytest_osmosis.outcomes import OUTCOMES, SKIPPED, Outcome
from pytest_osmosis.run_result import RunResult

RUN = RunResult("data.jsonl", 0, 0, success=True, scores={"f": 0.0})


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"passed": True}, "passed"),
        ({}, "below"),
        ({"error_type": "agent"}, "raised"),
        ({"error_type": "agent", "error_kind": "bad_request"}, "raised"),
        ({"error_type": "timeout"}, "timeout"),
        ({"error_type": "eval_fn"}, "error"),
        ({"error_type": "eval_fn", "error_kind": "judge_failed"}, "error"),
        ({"error_type": "provider", "error_kind": "overloaded"}, "error"),
        ({"error_type": "worker_lost"}, "error"),
        ({"error_type": "internal"}, "error"),
        ({"error_type": "eval_fn", "error_kind": SKIPPED}, "not run"),
    ],
)
def test_a_run_has_one_outcome_also_after_it_was_kept(fields: dict[str, Any], outcome: Outcome):
    run = replace(RUN, **fields)
    assert run.outcome == outcome
    assert RunResult.from_json(run.to_json()).outcome == outcome


def test_every_outcome_has_a_sign_and_a_colour_of_its_own_on_pages_too():
    assert tuple(OUTCOMES) == get_args(Outcome)
    assert len({each.sign for each in OUTCOMES.values()}) == len(OUTCOMES)
    assert len({each.color for each in OUTCOMES.values()}) == len(OUTCOMES)
    [listed] = re.findall(r"const OUTCOMES = \{(.*?)\};", script().text, re.DOTALL)
    found = dict(re.findall(r'"?([a-z]+(?: run)?)"?: \["(.)"', listed))
    assert found == {outcome: each.sign for outcome, each in OUTCOMES.items()}
    judged = [outcome for outcome in OUTCOMES if outcome != "not run"]
    bars = [re.search(rf"(?<!\S)\.{each} {{[^}}]* --bar: (.*?);", style().text) for each in judged]
    assert len({bar[1] for bar in bars if bar}) == len(judged)
