"""What each ready scorer scores, and its reason where the score is not full."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from osmosis_ai import scorers
from osmosis_ai.agents.tool_calls import ToolCall, tool_calls
from osmosis_ai.rubric.criteria import CRITERIA
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
        ("exact", "cafe\u0301", "caf\u00e9", None),
        ("exact", "“It’s” −5", "\"It's\" -5", None),
        ("exact", "1\u00a0000\u202f€", "1 000 €", None),
        ("exact", "pages 3–5, no 12", "pages 3-5, no 12", None),
        ("exact", "\uff14\uff12", "42", None),
        ("exact", "Раris", "Paris", "'Раris', wanted 'Paris' (character 1: CYRILLIC CAPITAL LETTER "
         "ER, wanted LATIN CAPITAL LETTER P)"),
        ("exact", "x" * 100, "x" * 101, f"'{'x' * 79}…', wanted '{'x' * 79}…' (character 101: "
         "none, wanted LATIN SMALL LETTER X)"),
        ("exact", "co\u2011op", "co-op", "'co\u2011op', wanted 'co-op' (character 3: NON-BREAKING "
         "HYPHEN, wanted HYPHEN-MINUS)"),
        ("exact", "m\ufe0f", "m", "'m\ufe0f', wanted 'm' (character 2: VARIATION SELECTOR-16, "
         "wanted none)"),
        ("exact", "ﬁne", "fine", "'ﬁne', wanted 'fine' (character 1: LATIN SMALL LIGATURE FI, "
         "wanted LATIN SMALL LETTER F)"),
        ("exact", "Rom", "Rome", "'Rom', wanted 'Rome'"),
        ("exact", "<think>Rome?</think>\n\nRome", "Rome", None),
        ("exact", "<think>Rome", "Rome", "cut within its reasoning"),
        ("includes", "It is ROME.", "Rome", None),
        ("includes(ignore_case=False)", "It is ROME.", "Rome", "'Rome' is not in 'It is ROME.'"),
        ("includes", "I know nothing", "no", "'no' is not a whole word of 'I know nothing'"),
        ("includes(words=False)", "I know nothing", "no", None),
        ("includes", "The answer is no.", "no", None),
        ("includes", "I can’t say", "can", "'can' is not a whole word of 'I can’t say'"),
        ("includes", "Rome’s walls", "Rome", None),
        ("includes", "un cafe\u0301", "caf\u00e9", None),
        ("includes", "cafe\u0301s", "caf\u00e9",
         "'caf\u00e9' is not a whole word of 'cafe\u0301s'"),
        ("includes", "naïve", "na", "'na' is not a whole word of 'naïve'"),
        ("includes", "snake_case", "case", "'case' is not a whole word of 'snake_case'"),
        ("includes", "_Rome_, or __Rome__", "Rome", None),
        ("includes", "दिल्लीवासी", "दिल्ली", "'दिल्ली' is not a whole word of 'दिल्लीवासी'"),
        ("includes", "नई दिल्ली है", "दिल्ली", None),
        ("includes", "அவர்கள்", "அவர்", "'அவர்' is not a whole word of 'அவர்கள்'"),
        ("includes", "a well-known\nman", "Known man", None),
        ("includes", "C++11", "C++", None),
        ("includes", "It is “Paris”.", '"Paris"', None),
        ("includes", "東京は首都です", "東京", None),
        ("includes", "กรุงเทพเป็นเมืองหลวง", "กรุงเทพ", None),
        ("includes", "新しいiPhoneです", "iPhone", None),
        ("includes", "Москвабад", "Москва", "'Москва' is not a whole word of 'Москвабад'"),
        ("includes", "15", "5", "'5' is not a whole word of '15'"),
        ("includes", "It is 4.5", "4", "'4' is not a whole word of 'It is 4.5'"),
        ("includes", "There are 42.", "42", None),
        ("includes", "答えは42です", "42", None),
        ("includes", "It has 1,000 rooms", "1000", None),
        ("includes", "فيه ١٬٠٠٠ غرفة", "1000", None),
        ("includes", "the roots 3, 6", "6", None),
        ("includes", "−5", "5", "'5' is not in '−5'".replace("in", "a whole word of")),
        ("includes", "on 2023-01-05, at 5:30, in A5 and 5th", "5", "'5' is not a whole word of "
         "'on 2023-01-05, at 5:30, in A5 and 5th'"),
        ("includes", "5² or x5", "5", "'5' is not a whole word of '5² or x5'"),
        ("includes", "agent 7", "007", "'007' is not in 'agent 7'"),
        ("includes", "agent 007.", "007", None),
        ("includes", "15 km", "5 km", "'5 km' is not a whole word of '15 km'"),
        ("includes", "5 km/h", "5 km", "'5 km' is not a whole word of '5 km/h'"),
        ("includes", "Rome/Oslo", "Rome", None),
        ("includes", "4.5 km", "5 km", "'5 km' is not a whole word of '4.5 km'"),
        ("includes", "<think>no</think>yes", "no", "'no' is not in 'yes'"),
        ("includes", "a no</think>yes", "no", "'no' is not in 'yes'"),
        ("includes", "Paris", ["B", "Paris"], None),
        ("includes", "The answer is (b).", ["B", "Paris"], None),
        ("includes", "Ä.", ["ä", "Paris"], None),
        ("includes", "B vitamins, as in Rome", ["B", "Paris"], "'B' is not what 'B vitamins, as in "
         "Rome' names, the first of 2 that would be right"),
        (r"regex('\\d+')", "7 o'clock", None, None),
        (r"regex('\\d+')", "noon", "7", r"no '\\d+' in 'noon'"),
        ("regex('at (?P<hour>.*)', group='hour')", "at 7 ", "7", None),
        ("regex('at (.*)', group=1)", "at 8", "7", "'8', wanted '7'"),
        ("regex('Answer: ([A-D])', group=1)", "Answer: A? No. Answer: B", "B", None),
        ("regex('Answer: ([A-D])', group=1, which='first')", "Answer: A? No. Answer: B", "B",
         "'A', wanted 'B'"),
        ("regex('(.*)', group=1)", "Rome", "Rome", None),
        ("regex('\"(.*)\"', group=1)", "“cafe\u0301”", "caf\u00e9", None),
        ("regex('“(.*)”', group=1)", "“Rome”", "Rome", None),
        ("regex('(B)|none', group=1)", "B, or none", "B", "'', wanted 'B'"),
        ("regex('B')", "<think>B</think>A", None, "no 'B' in 'A'"),
        ("number", "2 x 3 makes $1,206.50.", "1206.5", None),
        ("number", "between 5-3", "3", "no number in 'between 5-3'"),
        ("number", "−5", "5", "-5, wanted 5"),
        ("number", "0.5", "1/2", None),
        ("number", "1/3", "0.5", "1/3, wanted 0.5"),
        ("number", "0.30000000000000004", "0.3", "0.30000000000000004, wanted 0.3"),
        ("number(tolerance=0.1)", "0.3", "0.2", None),
        ("number(relative=0.5)", "-1", "-2", None),
        ("number(relative=0.5)", "1", "-2", "1, wanted -2"),
        ("number", "It is 5 or 6.", "6", "'It is 5 or 6.' can be read in more than one way"),
        ("number", r"5, so \boxed{x}", "5", r"the last \boxed{} holds 'x'"),
        ("number", "<think>maybe it is 4", "4", "cut within its reasoning"),
        ("number", "<think>5?</think>", "5", "no number in ''"),
        ("number", "6e3 in all", "6000", None),
        ("number", "six", "6", "no number in 'six'"),
        ("number", "6.01", "6", "6.01, wanted 6"),
        ("number(tolerance=0.01)", "1.01", "1", None),
        ("number(relative=0.1)", "-0.9", "-1", None),
        ("json_equal", FENCED, ROME, None),
        ("json_equal", f"So: {ROME}.", ROME, None),
        ("json_equal", f"Torn: [{ROME}", ROME, None),
        ("json_equal", 'So [a], [["b", 1], see {x}', '["b", 1]', None),
        ("json_equal", "{" * 200_000 + "[-1.5e3 ]", "[-1500]", None),
        ("json_equal", "3", "3.0", None),
        ("json_equal", '{"a": "cafe\u0301"}', '{"a": "caf\u00e9"}', None),
        ("json_equal", f"<think>{ROME}</think>[]", ROME, "it is [], wanted " + ROME),
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
def test_a_scorer_of_answers(scorer: str, answer: str, truth: Any, reason: str | None):
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


def talk(*calls: str) -> list[dict[str, Any]]:
    """A conversation with calls such as `get(id=1)`; those that end in `!` fail."""
    messages = []
    for number, text in enumerate(calls):
        name, _, rest = text.rstrip("!").partition("(")
        arguments = dict(pair.split("=") for pair in rest.rstrip(")").split(", ") if pair)
        given = {key: json.loads(value) for key, value in arguments.items()}
        messages.append(called(str(number), name, json.dumps(given)))
        content = "Error: no" if text.endswith("!") else "done"
        messages.append({"role": "tool", "tool_call_id": str(number), "content": content})
    return messages


A1 = {"name": "get", "arguments": {"id": 1}}
A2 = {"name": "get", "arguments": {"id": 2}}


@pytest.mark.parametrize(
    ("settings", "wanted", "calls", "reason"),
    [
        ("", ["get", "put"], ["put(x=1)", "other", "get"], None),
        ("", "get", ["get"], None),
        ("", '["get"]', ["get"], None),
        ("", [A1, A2], ["get(id=2)", "get(id=1, full=true)"], None),
        ("", ["get", A1], ["get(id=1)", "get(id=2)"], None),
        ("", [A1, A1], ["get(id=1)"], "no call get(id=1); called get(id=1)"),
        ("", [A1], ["get(id=true)"], "no call get(id=1); called get(id=True)"),
        ("", [A1], ["get(id=1.0)"], None),
        ("", ["get"], [], "no call get; the conversation shows no call"),
        ("", [{"function": {"name": "get", "arguments": '{"id": 1}'}}], ["get(id=1)"], None),
        ("", [{"name": "get", "args": {"id": 1}}], ["get(id=2)"], "no call get(id=1); called get("
         "id=2)"),
        ("", [{"name": "get", "input": {"id": 1}, "type": "tool_use"}], ["get(id=1)"], None),
        ("arguments='equal'", [A1], ["get(id=1, full=true)"], "no call get(id=1); called get(id=1, "
         "full=True)"),
        ("arguments='equal'", ["get"], ["get(id=1)"], None),
        ("arguments='ignore'", [A1], ["get(id=7)"], None),
        ("extra=False", ["get"], ["get", "ping"], "ping() was not wanted"),
        ("extra=False", [], [], None),
        ("extra=False", [], ["ping"], "ping() was not wanted"),
        ("extra=False", [A1], ["get(id=9)!", "get(id=1)"], None),
        ("extra=False", [A1], ["get(id=1)", "get(id=9)!"], "get(id=9) was not wanted"),
        ("order='in_order'", ["get", "put"], ["get", "ping", "put"], None),
        ("order='in_order'", ["get", "put"], ["put", "get"], "no call put at its place; called "
         "put(), get()"),
        ("order='exact'", ["get", A1], ["get", "get(id=1)"], None),
        ("order='exact'", ["get", "put"], ["get", "ping"], "call 2 is ping(), wanted put"),
        ("order='exact'", ["get", "put"], ["get"], "call 2 is missing, wanted put"),
        ("order='exact'", ["get"], ["get", "put(x=1)"], "call 2 is put(x=1), not wanted"),
        ("order='exact'", [], [], None),
    ],
)  # fmt: skip
def test_tools_compares_the_calls_with_those_of_the_row(
    settings: str, wanted: Any, calls: list[str], reason: str | None
):
    made: Any = scorers.named(f"tools({settings})")
    assert made.refuse_row(None, {"tools": wanted}) is None
    verdict = made(talk(*calls), None, {"tools": wanted})
    assert verdict == ({"score": 1.0} if reason is None else {"score": 0.0, "reason": reason})


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, "the row has no 'tools'"),
        ({"tools": []}, "'tools' wants no call, so that any would do: give extra=False"),
        ({"tools": {"get": 1}}, "'tools' is no list of calls"),
        ({"tools": "get, put"}, 'has "get, put"; expected a name'),
        ({"tools": [{"name": "get", "kwargs": {"id": 1}}]}, "expected a name, or an object with"),
        ({"tools": [{**A1, "args": {"id": 2}}]}, "expected a name, or an object with"),
        ({"tools": [3]}, "'tools' has 3; expected a name, or an object with name, arguments"),
        ({"tools": [{"name": "get", "arguments": "{"}]}, "has '{', which is not JSON"),
        ({"tools": [{"function": {"name": "get", "parameters": {}}}]}, "'tools' defines tools"),
    ],
)
def test_tools_refuses_rows_that_want_no_calls(row: dict[str, Any], fault: str):
    made: Any = scorers.tools()
    assert fault in made.refuse_row(None, row)
    with pytest.raises(ValueError, match="tools: "):
        made([], None, row)


@pytest.mark.parametrize(
    ("answer", "truth", "score"),
    [
        ("The cat, on a mat!", "cat on mat", 1.0),
        ("a black cat", "The cat", 2 / 3),
        ("cat cat dog", "cat", 0.5),
        ("Beyoncé’s band", "beyonce\u0301's Band", 1.0),
        ("東京", "東京都", 0.8),
        ("", "cat", 0.0),
        ("<think>cat</think>dog", "cat", 0.0),
        ("cat", ["dog", "black cat"], 2 / 3),
    ],
)
def test_f1_is_that_of_the_words(answer: str, truth: Any, score: float):
    made: Any = scorers.named("f1")
    verdict = made(answer, truth)
    assert verdict["score"] == pytest.approx(score)
    assert ("reason" in verdict) == (score < 1)


def test_f1_refuses_a_ground_truth_without_words():
    with pytest.raises(ValueError, match="is 'The!', which has no words"):
        scorers.f1()("The", "The!")


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


def test_a_ready_rubric_goes_to_the_judge_in_full_with_what_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", "judge-key-0123456789")
    seen: list[str] = []

    def answer(ask: Ask) -> dict[str, str]:
        seen.append(ask.messages[-1]["content"])
        return {"role": "assistant", "content": '{"score": 0.5, "explanation": "in part"}'}

    row = {"user_prompt": "Where?", "context": "It is in Rome."}
    with Endpoint(answer) as endpoint:
        for name in CRITERIA:
            made = scorers.judge(name, model="openai/m", api_base=endpoint.base_url)
            assert asyncio.run(made("In Rome.", ["Rome", "Roma"], row))["score"] == 0.5
            assert "<<<BEGIN reference_answer" in seen[-1]
            assert 'Any one of these: ["Rome", "Roma"]' in seen[-1]
    for rubric, text in zip(CRITERIA.values(), seen, strict=True):
        assert rubric in text
        assert ("It is in Rome." in text) == (rubric == CRITERIA["faithful"])
    correct: Any = scorers.judge("correct", model="openai/m")
    assert correct.refuse_ground_truth(" ") == ("is blank", "")
    assert correct.refuse_ground_truth(["Rome"]) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("incudes", "no scorer 'incudes'; there are choice, "),
        ("incudes", "or module:function. Did you mean 'includes'?"),
        ("Json-Equal()", "Did you mean 'json_equal'?"),
        ("number(tolerance=__import__('os'))", "its arguments must be literals"),
        ("number(**{'tolerance': 1})", "'None'"),
        ("number() + exact()", "its arguments must be literals"),
        ("number(tolerance='a')", "number: tolerance is a number, not 'a'"),
        ("number()(1)", "one pair of brackets makes a scorer: number(…)"),
        ("exact(ignore_case='no')", "exact: ignore_case is True or False, not 'no'"),
        ("f1(1)", "it takes no settings"),
        ("regex('a', which='first')", "which='first' has no effect without a group"),
        ("tools(order='exact', extra=True)", "extra has no effect with order='exact'"),
        ("tools(extra='no')", "extra is True or False, not 'no'"),
        ("tool_called(3)", "name is a text that is not empty, not 3"),
        ("judge('Is it?', model='openai/m', votes=0)", "votes must be from 1 to 101, not 0"),
        ("judge('Is it?', model='openai/m', votes=2.5)", "votes is a whole number, not 2.5"),
        ("judge('Is it?', model='openai/m', scale=(1, 0))", "must be below score_max (0)"),
        ("judge('Is it?', model='openai/m', scale=5)", "scale is two numbers, such as (0, 1)"),
        ("number(tolerance=-1)", "tolerance and relative are numbers from 0 on"),
        ("regex('(')", "missing )"),
        ("regex('a', group=1)", "has no group 1"),
        ("regex('a', which='any')", "which is 'last' or 'first', not 'any'"),
        ("number(tolerance=1e999)", "tolerance and relative are numbers from 0 on"),
        ("json_schema({'type': 'nope'})", "the schema is wrong: 'nope'"),
        ("judge('Is it polite?')", "model"),
        ("choice(base=2)", "base is 0 or 1, not 2"),
        ("judge('corect', model='openai/m')", "there is no ready rubric 'corect', only correct, f"),
        ("tools(order='some')", "order is one of ('any', 'in_order', 'exact'), not 'some'"),
        ("tools(arguments='all')", "arguments is one of ('subset', 'equal', 'ignore'), not 'all'"),
        ("code(timeout=0)", "timeout is a number of seconds up to 600"),
        ("choice('')", "options is a text that is not empty, not ''"),
    ],
)
def test_a_wrong_name_or_argument_is_one_sentence(text: str, message: str):
    with pytest.raises(ValueError) as caught:
        scorers.named(text)
    assert message in str(caught.value)


def test_other_text_names_no_scorer():
    assert scorers.named("rewards:exact") is None
    assert scorers.named("path/to/file.py") is None


@pytest.mark.parametrize("scorer", ["exact", "includes", "number", "json_equal"])
def test_a_row_without_ground_truth_is_an_error_of_what_compares_with_it(scorer: str):
    made = scorers.named(scorer)
    assert made is not None
    with pytest.raises(ValueError, match="compares with the ground truth, which is missing"):
        made("Rome", None)


COMPARING = ["exact", "includes", "includes(words=False)", "number", "json_equal",
             "regex('(.)', group=1)"]  # fmt: skip


@pytest.mark.parametrize("scorer", COMPARING)
@pytest.mark.parametrize("truth", ["", "  \n", "\u00a0", "\u200b", "\u3000\ufeff"])
def test_a_blank_ground_truth_is_refused_by_what_compares_with_it(scorer: str, truth: str):
    made: Any = scorers.named(scorer)
    assert made.refuse_ground_truth(truth) == ("is blank", "")
    with pytest.raises(ValueError, match="which is blank"):
        made("Rome", truth)


@pytest.mark.parametrize(
    "truth", [["A"], ["A", "b"], "A", "b", " C ", "(D)", "A.", "“B”", "**A**", "Ä", "\uff21"]
)
def test_one_letter_is_refused_by_includes(truth: Any):
    for made in (scorers.includes(), scorers.includes(words=False)):
        with pytest.raises(ValueError, match=r"one letter, .* try exact, or regex"):
            made("Paris is a city", truth)


@pytest.mark.parametrize("truth", ["no", "5", "C#", "東", "AB"])
def test_a_word_or_a_digit_is_not(truth: str):
    assert vars(scorers.includes())["refuse_ground_truth"](truth) is None


def test_what_a_scorer_cannot_compare_with_is_reported_with_a_next_step():
    refusals = [
        vars(made)["refuse_ground_truth"](truth)
        for made, truth in ((scorers.number(), "3, 6"), (scorers.json_equal(), "{a}"))
    ]
    assert refusals == [
        ("is '3, 6', not one number", "; exact compares any text"),
        ("is '{a}', not JSON", ""),
    ]


def test_what_compares_with_nothing_takes_any_ground_truth():
    assert scorers.regex("R")("Rome", "") == {"score": 1.0}
    assert scorers.json_schema({})("{}", None) == {"score": 1.0}


def test_a_judge_is_not_asked_about_an_answer_that_was_cut_within_its_reasoning():
    polite = scorers.judge(
        "Is it polite?", model="openai/m", scale=(1, 5), api_base="http://[::1]:9"
    )
    verdict = asyncio.run(polite("<think>Perhaps", None, {}))
    assert verdict == {"score": 1, "reason": "cut within its reasoning"}


def test_a_schema_fetches_nothing():
    scorer = scorers.json_schema({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(Exception, match="Unresolvable"):
        scorer("{}", None)
