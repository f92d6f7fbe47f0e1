"""Eval functions as other libraries have them: scored as a call of them by hand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_osmosis.errors import EvalFnError
from pytest_osmosis.user_code.eval_function import eval_fn
from pytest_osmosis.user_code.import_object import ImportingError

QUESTION = "What is 2 + 3?"
TEXT_ROW = {
    "question": QUESTION,
    "answer": "5",
    "level": 3,
    "system_prompt": "",
    "user_prompt": QUESTION,
    "ground_truth": "5",
}
PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
CHAT_ROW = {**TEXT_ROW, "messages": PROMPT, "solution": "5"}
TOOL_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
COMPLETION = [
    TOOL_CALL,
    {"role": "tool", "tool_call_id": "a", "content": "5"},
    {"role": "assistant", "content": "It is #### 5"},
]
SAID = "It is #### 5"


def scored(function: object, row: dict[str, Any] = TEXT_ROW, **changes: Any) -> float:
    """Return what a function makes of the rollout above."""
    given = {
        "messages": [*(PROMPT if "messages" in row else PROMPT[1:]), *COMPLETION],
        "solution_str": SAID,
        "ground_truth": "5",
        "metadata": row,
        **changes,
    }

    async def run_sync(call: Callable[[], Any]) -> Any:
        return call()

    function = eval_fn(function, name="rewards:f", option="--eval-fn")
    return asyncio.run(function.call(**given, run_sync=run_sync, row=lambda: "row-3"))


# ---- the functions, written as their libraries' documents show them


def verl(data_source, solution_str, ground_truth, extra_info=None):
    found = re.search(r"#### (-?[0-9.,]+)", solution_str)
    right = found is not None and found[1] == ground_truth
    return {"score": float(right) * extra_info["level"], "source": data_source}


def trl_text(completions, answer, **kwargs):
    assert kwargs["level"] == [3]
    return [float(text.endswith(right)) for text, right in zip(completions, answer, strict=True)]


def trl_annotated(completions: list[list[dict[str, str]]], solution: list[str]) -> list[float]:
    said = [completion[-1]["content"] for completion in completions]
    return [0.5 if right in text else 0.0 for text, right in zip(said, solution, strict=True)]


async def trl_chat(prompts, completions, solution, **kwargs):
    assert prompts[0][-1]["content"] == QUESTION
    said = [completion[-1]["content"] for completion in completions]
    return [0.5 if right in text else 0.0 for text, right in zip(said, solution, strict=True)]


def verifiers_kwargs(completion, answer, **kwargs):
    assert kwargs["state"]["completion"] == completion and kwargs["prompt"] == PROMPT
    return 1.0 if answer in completion[-1]["content"] else 0.0


def verifiers_parser(parser, completion, answer, state, info):
    return state["turn"] if parser.parse_answer(completion).endswith(answer) else info["level"]


def verifiers_text(completion: str, answer: str) -> float:
    return float(completion.split("#### ")[1] == answer)


def langsmith(inputs: dict, outputs: dict, reference_outputs: dict) -> bool:
    assert inputs["question"] == QUESTION
    return outputs["answer"].endswith(reference_outputs["answer"])


def langsmith_equal(outputs, reference_outputs):
    return outputs == reference_outputs


def promptfoo(output: str, context) -> dict[str, Any]:
    right = output.endswith(context["vars"]["answer"])
    return {"pass": right, "score": 0.7 if right else 0.0, "reason": context["prompt"]}


@dataclass
class Score:
    name: str
    score: float | None
    metadata: dict[str, Any]


def braintrust(output, expected, input):
    return Score("close", (len(output) - len(expected)) / len(input), {})


def autoevals(output, expected=None, **kwargs):
    return SimpleNamespace(score=float(expected in output), reason=kwargs["input"])


def actual_expected(actual, expected):
    return actual.endswith(expected), "the end decides"


def prediction_reference(prediction, reference):
    return prediction == reference


def right(answer, truth):
    return truth in answer


def response_answer(response: str, answer: str) -> float:
    return 0.25 if response.endswith(answer) else 0.0


def judged(question, response, correct_answer):
    return (question, response, correct_answer) == (QUESTION, SAID, "5")


OUTPUTS = {"output": SAID, "answer": SAID}
REFERENCE = {"output": "5", "answer": "5"}
CONTEXT = {"vars": TEXT_ROW, "prompt": QUESTION}
TABLE: list[tuple[Any, dict[str, Any], float]] = [
    (verl, TEXT_ROW, verl("gsm8k", SAID, "5", TEXT_ROW)["score"]),
    (trl_text, TEXT_ROW, trl_text([SAID], answer=["5"], level=[3])[0]),
    (trl_annotated, {**TEXT_ROW, "solution": "5"}, trl_annotated([COMPLETION], ["5"])[0]),
    (trl_chat, CHAT_ROW, asyncio.run(trl_chat([PROMPT], [COMPLETION], ["5"]))[0]),
    (
        verifiers_kwargs,
        CHAT_ROW,
        verifiers_kwargs(COMPLETION, "5", prompt=PROMPT, state={"completion": COMPLETION}),
    ),
    (verifiers_parser, CHAT_ROW, 2.0),
    (verifiers_text, TEXT_ROW, verifiers_text(SAID, "5")),
    (langsmith, TEXT_ROW, langsmith({"question": QUESTION}, OUTPUTS, REFERENCE)),
    (langsmith_equal, TEXT_ROW, langsmith_equal(OUTPUTS, REFERENCE)),
    (promptfoo, TEXT_ROW, promptfoo(SAID, CONTEXT)["score"]),
    (braintrust, TEXT_ROW, braintrust(SAID, "5", QUESTION).score),
    (autoevals, TEXT_ROW, 1.0),
    (actual_expected, TEXT_ROW, 1.0),
    (prediction_reference, TEXT_ROW, prediction_reference(SAID, "5")),
    (right, TEXT_ROW, right(SAID, "5")),
    (response_answer, TEXT_ROW, response_answer(SAID, "5")),
    (judged, TEXT_ROW, judged(QUESTION, SAID, "5")),
]


@pytest.mark.parametrize(
    ("function", "row", "by_hand"),
    [pytest.param(*case, id=getattr(case[0], "__name__", "partial")) for case in TABLE],
)
def test_each_shape_scores_as_a_call_by_hand(function: Any, row: dict[str, Any], by_hand: float):
    assert scored(function, row) == by_hand


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (langsmith_equal, "5"),
        (prediction_reference, "5"),
        (lambda generated_text, answer: generated_text == answer, "5"),
        (lambda truth, reply: reply == truth, "5"),
        (lambda expected, /, said: said == expected, "5"),
    ],
)
def test_the_answer_and_the_truth_are_not_exchanged(function: Any, wrong: str):
    assert scored(function, solution_str="5") == 1.0
    assert scored(function, solution_str="5", ground_truth="6", metadata={}) == 0.0


def test_what_a_partial_has_bound_is_not_given():
    assert scored(partial(right, truth="6")) == 0.0
    assert scored(partial(right, truth="#### 5")) == 1.0


def test_a_function_may_want_nothing_beside_a_pair():
    seen: list[Any] = []
    scored(lambda reply, label: seen.append((reply, label)) or 1)
    assert seen == [(SAID, "5")]


def test_a_changed_opening_is_no_part_of_the_completion():
    def own(completion, prompt):
        return [each["role"] for each in completion] == ["assistant", "tool", "assistant"]

    changed = [{"role": "system", "content": "Else."}, PROMPT[1], *COMPLETION]
    assert scored(own, CHAT_ROW, messages=changed) == 1.0
    assert scored(own, {"user_prompt": "", "system_prompt": ""}, messages=changed) == 1.0


@pytest.mark.parametrize("returned", [1.0, [1.0, 0.0], [], "1", [None]])
def test_a_function_of_lists_returns_a_list_of_one_score(returned: Any):
    with pytest.raises(EvalFnError, match=r"expected a (list of one score|finite float)"):
        scored(lambda completions, **kwargs: returned)


def both_given(expected, label): ...
def neither_given(a, b): ...
def no_answer(question, answer): ...
def plural(outputs, expected): ...
def either(completion, answer): ...
def not_text(output: dict, expected: dict): ...
def more(answer, target, target_type): ...
def runs(run, example): ...
def invocations(actual_invocations, expected_invocations): ...
def reserved(solution_str, ground_truth, prompt_str): ...
def conversation(messages, expected): ...


class Judge:
    def __call__(self, a, b): ...


@pytest.mark.fault("something is not callable, or its parameters' names fit nothing")
@pytest.mark.parametrize(
    "function",
    [
        both_given, neither_given, no_answer, plural, either, not_text, more, runs, invocations,
        reserved, conversation, Judge,
    ],
)  # fmt: skip
def test_a_doubtful_signature_is_refused_with_a_wrapper_that_works(function: Any):
    with pytest.raises(ImportingError) as caught:
        eval_fn(function, name="rewards:f", option="--eval-fn")
    lines = str(caught.value).splitlines()
    starts = [at for at, line in enumerate(lines) if line == "    from rewards import f"]
    assert len(starts) == (2 if function is either else 1)
    for at in starts:
        source = "\n".join(line[4:] for line in lines[at + 1 : at + 3])
        namespace: dict[str, Any] = {"f": _recorder(function)}
        exec(source, namespace)
        row = {**CHAT_ROW, "b": 1, "target_type": "number", "label": "5"}
        assert scored(namespace["scored"], row) == 1.0


def _recorder(function: Any) -> Any:
    """Return one with the same parameters that scores 1 when it is called with them all."""
    if isinstance(function, type):
        return lambda: lambda a, b: (a, b) == (SAID, "5")

    def recorded(**given: Any) -> bool:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        json.dumps(given)
        return sorted(given) == sorted(names)

    return recorded
