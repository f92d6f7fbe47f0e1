"""What each ready scorer scores, and its reason where the score is not full."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from osmosis_ai import scorers
from osmosis_ai.agents.tool_calls import ToolCall, tool_calls
from tests.support.endpoints import Ask, Endpoint

ROME = '{"city": "Rome", "days": 3}'
FENCED = f"Here it is:\n```json\n{ROME}\n```\nAnything else?"
SCHEMA = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["city"]}


def called(call_id: str, name: str, arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]}


TALK = [
    {"role": "user", "content": "Where is order A1?"},
    called("1", "get_order", '{"order_id": "A1", "full": true}'),
    {"role": "tool", "tool_call_id": "1", "content": '{"error": "no such order"}'},
    called("2", "get_order", '{"order_id":'),
    called("3", "ping", ""),
    {"role": "tool", "tool_call_id": "3", "content": "pong"},
    {"role": "assistant", "content": "I cannot find it."},
]


@pytest.mark.parametrize(
    ("scorer", "answer", "truth", "reason"),
    [
        ("exact", " Rome\n", "Rome", None),
        ("exact", "rome", "Rome", "'rome', wanted 'Rome'"),
        ("exact(ignore_case=True)", "rome", "Rome", None),
        ("exact(strip=False)", "Rome ", "Rome", "'Rome ', wanted 'Rome'"),
        ("includes", "It is ROME.", "Rome", None),
        ("includes(ignore_case=False)", "It is ROME.", "Rome", "'Rome' is not in 'It is ROME.'"),
        (r"regex('\\d+')", "7 o'clock", None, None),
        (r"regex('\\d+')", "noon", "7", r"no '\\d+' in 'noon'"),
        ("regex('at (?P<hour>.*)', group='hour')", "at 7 ", "7", None),
        ("regex('at (.*)', group=1)", "at 8", "7", "'8', wanted '7'"),
        ("number", "2 x 3 makes $1,206.50.", "1206.5", None),
        ("number", "between 5-3", "3", None),
        ("number", "6e3 in all", "6000", None),
        ("number", "six", "6", "no number in 'six'"),
        ("number", "6.01", "6", "6.01, wanted 6"),
        ("number(tolerance=0.01)", "1.01", "1", None),
        ("number(relative=0.1)", "-0.9", "-1", None),
        ("json_equal", FENCED, ROME, None),
        ("json_equal", f"So: {ROME}.", ROME, None),
        ("json_equal", "3", "3.0", None),
        ("json_equal", '{"city": "Rome"}', ROME, "days is missing"),
        ("json_equal", '{"a": [{"b": true}], "c": 1}', '{"a": [{"b": 1}]}',
         "a[0].b is true, wanted 1; c is not wanted"),
        ("json_equal", "Rome, three days", ROME, "no JSON in 'Rome, three days'"),
        ("json_equal", '{"a": NaN}', ROME, "no JSON in '{\"a\": NaN}'"),
        ("json_equal", '{"a":' * 100_000 + "}", ROME, "no JSON in '" + '{"a":' * 15 + "{\"a\"…'"),
        ("json_equal(ignore=['days'])", '{"city": "Rome", "days": 4}', ROME, None),
        (f"json_schema({SCHEMA})", FENCED, None, None),
        (f"json_schema({SCHEMA})", '{"days": "3"}', None, "$: 'city' is a required property"),
    ],
)  # fmt: skip
def test_a_scorer_of_answers(scorer: str, answer: str, truth: str | None, reason: str | None):
    made = scorers.named(scorer)
    assert made is not None
    verdict = made(answer, truth)
    assert verdict == ({"score": 1.0} if reason is None else {"score": 0.0, "reason": reason})


def test_tool_called_looks_at_the_name_and_the_arguments_that_are_given():
    assert scorers.tool_called("get_order", order_id="A1")(TALK) == {"score": 1.0}
    verdict = scorers.tool_called("get_order", order_id="A2")(TALK)
    assert verdict["score"] == 0.0
    assert verdict["reason"].startswith("no call get_order(order_id='A2'); called get_order({")
    assert "called nothing" in scorers.tool_called("ping")(TALK[:1])["reason"]


def test_no_tool_errors_names_those_that_failed():
    assert scorers.no_tool_errors()(TALK[4:]) == {"score": 1.0}
    verdict = scorers.no_tool_errors()(TALK)
    assert verdict["reason"].startswith("get_order: 'no such order'; get_order: 'arguments are not")


def test_tool_calls_have_arguments_and_results():
    first, second, third = tool_calls(TALK)
    assert first.arguments == {"order_id": "A1", "full": True} and first.error == "no such order"
    assert second.arguments == {} and second.result is None and "not JSON" in str(second.error)
    assert third == ToolCall("ping", {}, "pong", None)
    odd: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": "?"}, {"tool_calls": [3]}]
    assert tool_calls(odd) == []


def test_a_judge_scores_within_the_scale(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUDGE_KEY", "judge-key-0123456789")
    seen: list[str] = []

    def answer(ask: Ask) -> dict[str, str]:
        seen.append(json.dumps(ask.messages))
        return {"role": "assistant", "content": '{"score": 4, "explanation": "curt"}'}

    with Endpoint(answer) as endpoint:
        polite = scorers.judge(
            "How polite is it?",
            model="openai/m",
            scale=(1, 5),
            api_key_env="JUDGE_KEY",
            api_base=endpoint.base_url,
        )
        verdict = asyncio.run(polite("Go away.", None, {"user_prompt": "May I?"}))
    assert verdict == {"score": 4.0, "reason": "curt"}
    assert "May I?" in seen[0] and "Go away." in seen[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("incudes", "no scorer 'incudes'; there are exact, includes"),
        ("number(tolerance=__import__('os'))", "its arguments must be literals"),
        ("number(**{'tolerance': 1})", "'None'"),
        ("number() + exact()", "its arguments must be literals"),
        ("number(tolerance='a')", "'float'; it takes tolerance, relative"),
        ("number(tolerance=-1)", "tolerance and relative are numbers from 0 on"),
        ("regex('(')", "missing )"),
        ("regex('a', group=1)", "has no group 1"),
        ("json_schema({'type': 'nope'})", "the schema is wrong: 'nope'"),
        ("judge('Is it polite?')", "model"),
    ],
)
def test_a_wrong_name_or_argument_is_one_sentence(text: str, told: str):
    with pytest.raises(ValueError) as caught:
        scorers.named(text)
    assert told in str(caught.value)


def test_other_text_names_no_scorer():
    assert scorers.named("rewards:exact") is None
    assert scorers.named("path/to/file.py") is None


@pytest.mark.parametrize("scorer", ["exact", "includes", "number", "json_equal"])
def test_a_row_without_ground_truth_is_an_error_of_what_compares_with_it(scorer: str):
    made = scorers.named(scorer)
    assert made is not None
    with pytest.raises(ValueError, match="compares with the ground truth, and the row has none"):
        made("Rome", None)


def test_a_schema_fetches_nothing():
    scorer = scorers.json_schema({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(Exception, match="Unresolvable"):
        scorer("{}", None)
