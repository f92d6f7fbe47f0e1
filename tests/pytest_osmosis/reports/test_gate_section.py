"""The section of a gate that failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_osmosis.features.comparison.results import Comparison, Difference
from pytest_osmosis.features.comparison.section import BaselineReport
from pytest_osmosis.reports.gate_section import gate_section
from pytest_osmosis.verdicts import GateResult, Interval, Paired
from tests.support.made_results import EXACT, suite_of

SUITE = suite_of([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], ["503"] * 2, [0.0, 0.0], [0.0, 0.0]])
FAILED = GateResult(
    gate="mean >= 0.9", metric="mean", eval_fn=EXACT, operator=">=", threshold=0.9,
    outcome="failed", figure=0.25, low=0.25, high=0.25, interval=None, rows=6, unknown=0,
    more_rows=None,
)  # fmt: skip
FALL = Paired(-0.25, Interval(-0.4, -0.1, "t", 0.9), 0.01, "t")
AGAINST = BaselineReport(
    (Comparison(EXACT, 6, (Difference("mean", 0.25, 0.5, FALL),), (), 0, 0),), ()
)


def section(verdict: GateResult, suite=SUITE) -> list[str]:
    return gate_section(verdict, suite, section_of=lambda run: f"section of {run}", where="there")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "mean is 0.25, 0.65 short"),
        ({"operator": "<=", "threshold": 0.2}, "mean is 0.25, 0.05 too much"),
        ({"operator": "==", "threshold": 1.0}, "mean is 0.25"),
        (
            {"interval": Interval(0.1, 0.5, "t", 0.8)},
            "mean is 0.25 (80% 0.100 .. 0.500), 0.65 short",
        ),
        (
            {"metric": "tokens", "eval_fn": None, "operator": "<=", "threshold": 5.0,
             "figure": 144567.0, "low": 144567.0, "high": 144567.0},
            "tokens is 144,567, 144,562 too much",
        ),
        (
            {"high": 0.5, "unknown": 2},
            "mean is 0.25 (0.25 .. 0.5, 2 runs unknown), 0.65 short",
        ),
        ({"figure": None, "low": None, "high": None, "reason": "there are no rows"},
         "there are no rows"),
    ],
)  # fmt: skip
def test_it_begins_with_the_value_and_how_far_it_is(changed, said):
    assert section(replace(FAILED, **changed))[0] == said


def test_against_a_baseline_the_interval_is_that_of_the_difference():
    verdict = replace(FAILED, metric="mean - baseline", threshold=0.0, figure=-0.25, low=-0.25,
                      high=-0.25)  # fmt: skip
    lines = section(verdict, replace(SUITE, sections={"baseline": AGAINST}))
    assert lines[0] == "mean - baseline is -0.25 (90% -0.400 .. -0.100), 0.25 short"


def test_three_of_its_rows_follow_with_a_run_that_did_not_pass_each():
    lines = section(FAILED)
    titles = [line for line in lines if line.startswith("row-")]
    assert titles == [f"row-{row}[run-0] (0 of 2 runs passed)" for row in (2, 4, 5)]
    assert sum(line.startswith("section of ") for line in lines) == 3
    assert lines[-1] == "4 rows did not pass every time: there"
    assert len(section(replace(FAILED, is_measure=True))) == 1


def test_of_a_gate_on_each_row_those_below_it_follow():
    lines = section(replace(FAILED, metric="each row", threshold=0.5))
    assert [line for line in lines if line.startswith("row-")] == [
        f"row-{row}[run-0] (0 of 2 runs passed)" for row in (2, 4, 5)
    ]
    assert lines[-1] == "3 rows below: there"
