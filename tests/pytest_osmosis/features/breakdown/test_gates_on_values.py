"""Gates on each value of a column: what decides, who is named, and what they refuse."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.features.breakdown.gates import table_of as values_of
from pytest_osmosis.verdicts import POINT_ESTIMATES, GateResult
from tests.support.made_results import info
from tests.support.project import Project, Session
from tests.support.score_tables import LOST, UNKNOWN, table_of

OF = {"law": range(12), "tax": range(12, 24), "art": range(24, 26)}
RIGHT, WRONG = [1.0, 1.0], [0.0, 0.0]


def verdict(
    gate: str,
    rows: Sequence[Sequence[Any]],
    before: Sequence[Sequence[Any]] = (),
    confidence: float | None = None,
    of: Mapping[str, Sequence[int]] = OF,
) -> GateResult:
    table = table_of(rows)
    references = {"each topic": values_of(info(rows=len(rows), n=2), table.rows, of)}
    if before:
        references["baseline"] = table_of(before)
    return evaluate(parse_gate(gate), table, confidence=confidence, **references)


def law(wrong: int, others: Sequence[Any] = RIGHT) -> list[Sequence[Any]]:
    """Rows of `OF`, so many of law wrong."""
    return [*[WRONG] * wrong, *[RIGHT] * (12 - wrong), *[others] * 14]


@pytest.mark.parametrize(
    ("gate", "rows", "outcome", "figure", "words"),
    [
        ("pass@1 >= 0.75", law(3), "passed", 0.75, "topic=law is the worst of 3 values"),
        ("pass@1 >= 0.8", law(3), "failed", 0.75, "topic=law is the worst of 3 values"),
        ("pass@1 >= 0.8", law(3, WRONG), "failed", 0.0, "failed too: art at 0, law at 0.75"),
        ("pass@1 <= 0.5", law(12), "failed", 1.0, "topic=tax is the worst of 3 values"),
        ("mean >= 0.5", law(0), "passed", 1.0, "the same for 3 values of topic"),
        ("mean >= 0.5", law(0, [UNKNOWN] * 2), "inconclusive", None, "inconclusive too: art (no"),
        ("mean >= 0.5", law(0, [LOST] * 2), "inconclusive", None, "topic=tax is the worst"),
        ("mean >= 0.5", law(12, [LOST] * 2), "failed", 0.0, "inconclusive: tax (no figure), art"),
        ("errors == 0", law(0, [1.0, UNKNOWN]), "failed", 12.0, "failed too: art at 2"),
        ("tokens <= 2400", law(0), "passed", 2400.0, "topic=law is the worst"),
        ("max(tokens) <= 100", law(0), "passed", 100.0, "the same for 3 values"),
    ],
)
def test_the_worst_value_decides(
    gate: str, rows: list[Any], outcome: str, figure: float | None, words: str
):
    found = verdict(f"each topic: {gate}", rows)
    assert (found.outcome, found.figure) == (outcome, figure)
    assert words in found.detail
    assert found.rows == len(OF[found.group or ""])


def test_values_that_are_judged_together_have_wider_intervals():
    of = {"law": range(12), "others": range(12, 26)}
    found = verdict("each topic: pass@1 >= 0.3", law(3), confidence=0.95, of=of)
    alone = evaluate(parse_gate("pass@1 >= 0.3"), table_of(law(3)[:12]), confidence=0.975)
    assert (found.group, found.outcome, found.confidence) == ("law", "passed", 0.95)
    assert found.interval == alone.interval
    assert "97.5% confidence" in found.sentence()
    open_ = verdict("each topic: mean(duration_s) <= 9", law(3), confidence=0.95)
    assert open_.outcome == "inconclusive"  # all alike: t has no interval
    assert open_.detail.endswith("no interval: law (12 rows), tax (12 rows), art (2 rows)")


def test_a_fall_in_one_value_fails_and_luck_does_not():
    gate = "each topic: mean - baseline >= -0.02"
    fallen = verdict(gate, law(12), law(0))
    assert (fallen.outcome, fallen.group, fallen.figure) == ("failed", "law", -1.0)
    luck = verdict(gate, law(2), law(0))
    assert (luck.outcome, luck.group) == ("passed", "law")
    assert "too few rows to show anything: art (2 rows)" in luck.detail
    assert verdict(gate, law(2), law(0), POINT_ESTIMATES).outcome == "failed"
    assert verdict(gate, law(0), law(0), 0.95).outcome == "inconclusive"


def test_a_value_is_named_in_one_line():
    of = {"a\nb\x1b[31m" + "x" * 300: range(12), "tax": range(12, 26)}
    found = verdict("each topic: mean >= 0.5", law(12), of=of)
    assert re.fullmatch(r"topic=a b\S+x… is the worst of 2 values", found.detail)
    assert re.fullmatch(r"mean of topic=a b\S+x…", found.subject)
    assert "\x1b" not in found.detail + found.subject


def test_what_is_not_known_of_rows_decides_nothing():
    found = verdict("each topic: mean >= 0.5", law(0), of={"law": range(3)})
    assert (found.outcome, found.reason) == (
        "inconclusive",
        "which topic each row has is not known",
    )


def test_an_unchanged_agent_is_rarely_red_and_a_fall_in_one_value_is_found():
    """Of 40 pairs: rows of three values, right with a chance of 0.7, two runs a row."""
    draw = random.Random(5)
    of = {name: range(30 * at, 30 * at + 30) for at, name in enumerate(("law", "tax", "art"))}

    def session(*chances: float) -> list[list[float]]:
        return [[float(draw.random() < p) for _ in "12"] for p in chances for _ in range(30)]

    def red(*now: float) -> int:
        gate = "each topic: mean - baseline >= 0"
        pairs = ((session(*now), session(0.7, 0.7, 0.7)) for _ in range(40))
        return sum(verdict(gate, *pair, of=of).outcome == "failed" for pair in pairs)

    assert red(0.7, 0.7, 0.7) <= 3
    assert red(0.7, 0.3, 0.7) >= 30


# ---- as users give them


@pytest.fixture
def topics(project: Project) -> Project:
    """Six rows of each of two topics."""
    names = [(topic, f"{topic} {at}") for topic in ("law", "tax") for at in range(6)]
    project.rows(
        *({"user_prompt": text, "ground_truth": text, "topic": topic} for topic, text in names)
    )
    return project


def gated(project: Project, *more: str) -> Session:
    gates = ("each topic: pass@1 >= 0.8", "each topic: mean - baseline >= -0.02")
    return project.run(*(f"--osmosis-gate={gate}" for gate in gates), *more)


def test_an_agent_that_is_worse_at_one_topic_fails(topics: Project):
    topics.run("--osmosis-output=before.json")
    more = ("--osmosis-baseline=before.json", "--osmosis-fresh")
    same = gated(topics, *more)
    assert same.ret == 0, same.out
    topics.endpoint.answers = lambda ask: "no" if "tax" in ask.row else ask.row
    worse = gated(topics, *more)
    assert worse.ret == 1
    plain, difference = worse.report["gates"]
    assert (plain["outcome"], plain["group"], plain["figure"]["value"]) == ("failed", "tax", 0.0)
    assert (difference["outcome"], difference["group"], difference["rows"]) == ("failed", "tax", 6)
    assert "pass@1 of topic=tax is 0, 0.8 short; topic=tax is the worst of 2 values" in worse.out
    assert "6 rows did not pass every time" in worse.out
    assert [each["column"] for each in worse.report["by"]] == ["topic"]


def test_shards_are_merged_by_the_values_of_the_whole(topics: Project):
    topics.endpoint.answers = lambda ask: "no" if ask.row in ("tax 1", "tax 3") else ask.row
    for part in ("1/2", "2/2"):
        topics.run(
            f"--osmosis-shard={part}", f"--osmosis-output=part-{part[0]}.json",
            "--osmosis-gate=each topic: pass@1 >= 0.7",
        )  # fmt: skip
    words = ["eval", "merge", "part-1.json", "part-2.json", "-o", "out.json"]
    assert CliRunner().invoke(cli, words).exit_code == 1
    [gate] = Session(0, "", "", topics.path).report["gates"]
    assert (gate["group"], gate["figure"]["value"], gate["rows"]) == (
        "tax",
        pytest.approx(4 / 6),
        6,
    )


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("each topc: mean >= 1", "no row has such a column"),
        ("each topic mean >= 1", "each COLUMN: stands once, before a metric"),
        ("each topic: each topic: mean >= 1", "each COLUMN: stands once, before a metric"),
        ("each : mean >= 1", "each names no column before its colon"),
        ("each topic: agreement(exact) >= 0.6", "agreement is that of all rows"),
        ("each topic: pass@3 >= 1", "pass@3 needs --n 3"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(topics: Project, gate: str, said: str):
    session = topics.run(f"--osmosis-gate={gate}")
    assert (session.ret, topics.endpoint.requests) == (4, 0)
    assert said in session.mistake


def test_a_row_without_a_value_is_named(topics: Project):
    topics.rows("a", {"user_prompt": "b", "ground_truth": "b", "topic": "law"})
    session = topics.run("--osmosis-gate=each topic: mean >= 1")
    assert session.ret == 4
    assert "data.jsonl: 1 row without a value (row 0): give each one" in session.mistake
