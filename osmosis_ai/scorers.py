"""Ready eval functions: each function here makes one, with its settings.

They are used as values (`close = scorers.number(tolerance=0.01)`), and by name on the command line
(`--eval-fn includes`, `--eval-fn "number(tolerance=0.01)"`), where `named` reads literals alone and
executes nothing. A `Verdict` has a reason wherever the score is not full. An answer that cannot be
read is wrong; a row without what a scorer needs is an error, which `refuse_ground_truth` of the
scorer tells before any answer is there. Reasoning in the answer is no part of it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import inf
from string import punctuation
from typing import Any, Literal, NoReturn, TypedDict, TypeVar, get_args

from .agents.tool_calls import ToolCall, tool_calls
from .folding import difference, fold, is_blank, is_spaceless
from .number_reading import answer_places, is_bare, numbers_in, read_answer, read_truth
from .option_reading import (
    LETTERS,
    OptionError,
    Options,
    chosen_option,
    has_place,
    options_of,
    right_options,
)
from .reasoning import answer_in
from .rubric import aevaluate_rubric
from .wanted_calls import (
    Arguments,
    CallsError,
    Order,
    WantedCall,
    first_difference,
    wanted_calls,
    without_repeated,
)
from .whole_words import word_places

__all__ = [
    "Verdict",
    "choice",
    "code",
    "exact",
    "f1",
    "includes",
    "json_equal",
    "json_schema",
    "judge",
    "math",
    "no_tool_errors",
    "number",
    "regex",
    "tool_called",
    "tools",
]

SHOWN = 80
"""Characters of an answer or a value that a reason quotes."""
MOST_SECONDS = 600
"""That code and its tests may take."""
CODE_RUNS = "code executes what the model wrote, on this machine and outside of any sandbox"
CUT = "cut within its reasoning"
"""The reason of an answer that there is not."""
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_TEXT = r'"(?:[^"\\]|\\.)*"\s*'
_ITEM = rf"(?:{_TEXT}|-?[0-9][0-9.eE+-]*|true|false|null)\s*[,\]]"
_JSON_START = re.compile(rf"(?=\{{\s*(?:\}}|{_TEXT}:)|\[\s*(?:[\]\[{{]|{_ITEM}))")
"""Only there a decoder is asked: its refusals take longer the further on in a text they are."""
_CALL = re.compile(r"[A-Za-z_][\w-]*(?:\(.*\))?", re.DOTALL)


class _Score(TypedDict):
    score: float


class Verdict(_Score, total=False):
    """A score from 0 to 1, and why it is not full."""

    reason: str


AnswerScorer = Callable[[str, Any], Verdict]
"""Called with the answer and the ground truth."""
RowScorer = Callable[[str, Any, Mapping[str, Any]], Verdict]
"""Called with the answer, the ground truth as it stands in the file, and the row."""
ConversationScorer = Callable[..., Verdict]
"""Called with the messages."""
Judge = Callable[[str, Any, Mapping[str, Any]], Awaitable[Verdict]]
"""Called with the answer, the ground truth and the row."""


Make = TypeVar("Make", bound=Callable[..., Any])


def _with_settings(make: Make) -> Make:
    """Refuse settings of another type than their defaults have: 'no' would be taken for True."""
    signature = inspect.signature(make)
    kinds = {name: _kind_of(each) for name, each in signature.parameters.items()}

    @functools.wraps(make)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = kinds[name]
            if kind is None:
                continue
            is_right = type(value) in (int, float) if kind is float else type(value) is kind
            if not is_right or value == "":
                raise ValueError(f"{make.__name__}: {name} is {_KINDS[kind]}, not {value!r}")
        return make(*args, **kwargs)

    return checked  # type: ignore[return-value]


_KINDS = {
    bool: "True or False",
    str: "a text that is not empty",
    float: "a number",
    int: "a whole number",
}


def _kind_of(parameter: inspect.Parameter) -> type | None:
    """Return which type a setting has; None where several may be."""
    named = {kind.__name__: kind for kind in _KINDS}
    return None if parameter.kind is parameter.VAR_KEYWORD else named.get(parameter.annotation)


@_with_settings
def exact(*, ignore_case: bool = False, strip: bool = True) -> AnswerScorer:
    """Score 1 where the answer is the ground truth; `strip`: whatever white space is around it."""

    def compare(answer: str, truth: str) -> Verdict:
        given, wanted = (
            _folded(text.strip() if strip else text, ignore_case) for text in (answer, truth)
        )
        return _same(given, wanted)

    return _scorer("exact", compare)


@_with_settings
def includes(*, ignore_case: bool = True, words: bool = True) -> AnswerScorer:
    """Score 1 where the ground truth is somewhere in the answer, as whole words.

    A number is found as a whole number. Without `words`, as any part of the text. One letter, among
    several that are right, is found only where the answer is it, or says so.
    """

    def compare(answer: str, truth: str) -> Verdict:
        if (letter := _letter_of(truth)) is not None:
            return _names_letter(answer, letter)
        wanted, text = (_folded(side.strip(), ignore_case) for side in (truth, answer))
        number = read_truth(truth) if words and is_bare(truth) else None
        if number is not None:
            is_found = number in numbers_in(answer)
        elif words:
            folded, sought = (" ".join(side.split()) for side in (text, wanted))
            is_found = next(word_places(folded, sought), None) is not None
        else:
            is_found = wanted in text
        how = "not a whole word of" if wanted in text else "not in"
        return _verdict(is_found, f"{_short(truth.strip())} is {how} {_short(answer)}")

    return _scorer("includes", compare, refuse_all=_refuse_letters)


@_with_settings
def regex(
    pattern: str, *, group: int | str = 0, which: Literal["last", "first"] = "last"
) -> AnswerScorer:
    """Score 1 where the pattern is found in the answer.

    With a `group`, by number or name, the text of that group must be the ground truth besides, in
    the last place where the pattern matches, or the first.
    """
    compiled = _compiled(pattern, group)
    if which not in ("last", "first"):
        raise ValueError(f"regex: which is 'last' or 'first', not {which!r}")
    if which == "first" and group == 0:
        raise ValueError("regex: which='first' has no effect without a group")

    def compare(answer: str, truth: str) -> Verdict:
        for text in (fold(answer), answer):  # the pattern may have a typographic character
            places = [*compiled.finditer(text)]
            if places:
                break
        else:
            return _verdict(False, f"no {pattern!r} in {_short(answer)}")
        if group == 0:
            return _verdict(True, "")
        places = [place for place in places if place[0]] or places
        chosen = places[-1 if which == "last" else 0]
        return _same(*(fold(text).strip() for text in (chosen[group] or "", truth)))

    return _scorer("regex", compare, compares=group != 0)


@_with_settings
def number(*, tolerance: float = 0.0, relative: float = 0.0) -> AnswerScorer:
    """Score 1 where the number that the answer gives is that of the ground truth.

    It may differ by `tolerance`, or by the share `relative` of the ground truth: 0.01 is 1 %.
    """
    if not (0.0 <= tolerance < inf and 0.0 <= relative < inf):
        raise ValueError("number: tolerance and relative are numbers from 0 on")
    absolute, share = (Fraction(str(float(limit))) for limit in (tolerance, relative))

    def compare(answer: str, truth: str) -> Verdict:
        wanted = read_truth(truth)
        assert wanted is not None  # else it was refused
        given = read_answer(answer)
        if isinstance(given, str):
            return _verdict(False, given or f"no number in {_short(answer)}")
        allowed = max(absolute, share * abs(wanted))
        return _verdict(abs(given - wanted) <= allowed, f"{_shown(given)}, wanted {_shown(wanted)}")

    return _scorer("number", compare, refuse=_refuse_no_number)


@_with_settings
def choice(options: str = "choices", *, base: int | None = None) -> RowScorer:
    """Score 1 where the answer names the right one of the options in a column of the row.

    The ground truth is a label, an option's text, or the place of one: from 0 where it is a number,
    of digits as text from `base`. Rows without the column `choices` have lettered options in their
    prompt.
    """
    if base is not None and (type(base) is not int or base not in (0, 1)):
        raise ValueError(f"choice: base is 0 or 1, not {base!r}")

    def read(truth: Any, row: Mapping[str, Any]) -> tuple[Options, frozenset[int]]:
        found = options_of(row, options)
        return found, right_options(truth, found, base)

    def refuse_row(truth: Any, row: Mapping[str, Any]) -> str | None:
        try:
            read(truth, row)
        except OptionError as error:
            return str(error)
        return None

    def choice(solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any]) -> Verdict:
        try:
            offered, right = read(ground_truth, extra_info)
        except OptionError as error:
            raise ValueError(f"choice: {error}") from None
        answer = answer_in(solution_str)
        if answer is None:
            return _verdict(False, CUT)
        given = chosen_option(answer, offered)
        if isinstance(given, str):
            return _verdict(False, given)
        wanted = " or ".join(map(offered.name, sorted(right)))
        return _verdict(given in right, f"names {offered.name(given)}, wanted {wanted}")

    vars(choice).update(refuse_row=refuse_row, reads_own_truth=True)
    if base is not None:
        vars(choice)["used_setting"] = ("base", has_place)
    return choice


@_with_settings
def code(tests: str = "test", *, timeout: float = 10.0) -> RowScorer:
    """Score 1 where the code of the answer passes the tests in a column of the row.

    It runs what a model wrote, on this machine: see `code_tests`. The tests are text or a list of
    asserts; where they define `check`, it is called with the function that `entry_point` names.
    `timeout`: seconds for all of it.
    """
    from .code_tests import TestsError, code_in, failure, tests_of

    if not 0 < timeout <= MOST_SECONDS:
        raise ValueError(f"code: timeout is a number of seconds up to {MOST_SECONDS}")

    def refuse_row(truth: Any, row: Mapping[str, Any]) -> str | None:
        try:
            tests_of(row, tests)
        except TestsError as error:
            return str(error)
        return None

    def code(solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any]) -> Verdict:
        try:
            text, entry_point = tests_of(extra_info, tests)
        except TestsError as error:
            raise ValueError(f"code: {error}") from None
        answer = answer_in(solution_str)
        if answer is None:
            return _verdict(False, CUT)
        prompt = extra_info.get("user_prompt")
        program = code_in(answer, prompt if isinstance(prompt, str) else "", text, entry_point)
        if program is None:
            return _verdict(False, f"no Python in {_short(answer)}")
        reason = failure(program, text, entry_point, timeout)
        return _verdict(reason is None, reason or "")

    vars(code).update(refuse_row=refuse_row, notice=f"{CODE_RUNS} (docs: Security)")
    return code


def f1() -> AnswerScorer:
    """Score how far the words of the answer are those of the ground truth, from 0 to 1.

    The harmonic mean of precision and recall over words, as SQuAD counts them: in lower case,
    without punctuation and a, an, the. Of scripts without spaces each character is a word.
    """

    def compare(answer: str, truth: str) -> Verdict:
        given, wanted = Counter(_squad_words(answer)), Counter(_squad_words(truth))
        shared = (given & wanted).total()
        if given == wanted:
            return _verdict(True, "")
        reason = f"{shared} words shared of {given.total()} given and {wanted.total()} wanted"
        return {"score": 2 * shared / (given.total() + wanted.total()), "reason": reason}

    return _scorer("f1", compare, refuse=_refuse_no_words)


def math() -> AnswerScorer:
    """Score 1 where the answer is mathematically equal to the ground truth, as LaTeX or plain.

    It needs the package math-verify, which the extra `math` installs.
    """
    from .math_equality import answer_in_latex, are_equal, as_latex, is_installed, is_readable

    if not is_installed():
        raise ValueError("math needs math-verify: pip install 'pytest-osmosis[math]'")

    def latex_of(truth: str) -> str | None:
        return as_latex(next(answer_places(truth)))

    def refuse(truth: str) -> Fault | None:
        latex = latex_of(truth)
        if latex is not None and re.fullmatch(r"-?\d+,\d\d?|\d+-\d+-\d+", latex):
            return (
                f"is {_short(truth)}, which can be read in two ways",
                "; write 1.5, (1, 5), or take exact",
            )
        if latex is None or not is_readable(latex):
            return f"is {_short(truth)}, which is no mathematics", "; exact compares any text"
        return None

    def compare(answer: str, truth: str) -> Verdict:
        wanted, given = latex_of(truth), answer_in_latex(answer)
        if given is None or wanted is None:
            return _verdict(False, f"no mathematics in the place that decides of {_short(answer)}")
        found = are_equal(given, wanted)
        if found is None:
            return _verdict(False, f"{_short(given)} was not compared in time")
        return _verdict(found, f"{_short(given)}, wanted {_short(wanted)}")

    return _scorer("math", compare, refuse=refuse)


@_with_settings
def json_equal(*, ignore: Iterable[str] = ()) -> AnswerScorer:
    """Score 1 where the JSON of the answer is that of the ground truth.

    Text around it, and a code fence, are passed over; keys in `ignore` count nowhere.
    """
    ignored = frozenset([ignore] if isinstance(ignore, str) else ignore)

    def compare(answer: str, truth: str) -> Verdict:
        wanted, given = _decode(truth), _json_in(answer)
        assert wanted is not None  # else it was refused
        if given is None:
            return _verdict(False, f"no JSON in {_short(answer)}")
        differences = [*_differences(given[0], wanted[0], "", ignored)]
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        return _verdict(not differences, "; ".join(differences[:3]) + more)

    def read(truth: Any) -> list[str]:  # a list is a value of JSON as any other
        return [_json_text(truth)]

    return _scorer("json_equal", compare, refuse=_refuse_no_json, read=read)


def json_schema(schema: Mapping[str, Any]) -> AnswerScorer:
    """Score 1 where the JSON of the answer is valid by a JSON Schema (2020-12, unless it says)."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from referencing import Registry

    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"json_schema: the schema is wrong: {error.message}") from None
    validator = validator_class(schema, registry=Registry())  # which fetches nothing

    def compare(answer: str, truth: str) -> Verdict:
        given = _json_in(answer)
        if given is None:
            return _verdict(False, f"no JSON in {_short(answer)}")
        error = best_match(validator.iter_errors(given[0]))
        where = "" if error is None else f"{error.json_path}: {error.message}"
        return _verdict(error is None, where)

    return _scorer("json_schema", compare, compares=False)


@_with_settings
def tool_called(name: str, **arguments: Any) -> ConversationScorer:
    """Score 1 where the tool was called, with at least these arguments."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())

    def tool_called(messages: Sequence[Mapping[str, Any]]) -> Verdict:
        calls = tool_calls(messages)
        made = [f"{call.name}({json.dumps(call.arguments)})" for call in calls]
        made = made or ["nothing that the conversation shows"]
        return _verdict(
            any(call.matches(name, arguments) for call in calls),
            f"no call {name}({given}); called {_short(', '.join(made), quoted=False)}",
        )

    return tool_called


@_with_settings
def tools(
    expected: str = "tools",
    *,
    order: Order = "any",
    extra: bool | None = None,
    arguments: Arguments = "subset",
) -> ConversationScorer:
    """Score 1 where the tool calls are those in the column `expected` of the row.

    `order`: "any"; "in_order", with others between; "exact", those and no others. `extra`: whether
    others may be there, as they may unless it is False. `arguments`: "subset", at least the wanted
    ones; "equal"; "ignore". Calls that failed and were made again with success do not count.
    """
    for name, value, known in (("order", order, Order), ("arguments", arguments, Arguments)):
        if value not in get_args(known):
            raise ValueError(f"tools: {name} is one of {get_args(known)}, not {value!r}")
    if extra is not None and not isinstance(extra, bool):
        raise ValueError(f"tools: extra is True or False, not {extra!r}")
    if extra is not None and order == "exact":
        raise ValueError("tools: extra has no effect with order='exact', which allows no others")
    may_be_more = extra is not False

    def matches(call: ToolCall, wanted: WantedCall) -> bool:
        if call.name != wanted.name or wanted.arguments is None or arguments == "ignore":
            return call.name == wanted.name
        given = call.arguments
        if arguments == "subset":
            given = {name: given[name] for name in wanted.arguments if name in given}
        return next(_differences(given, dict(wanted.arguments), "", frozenset()), None) is None

    def read(row: Mapping[str, Any]) -> list[WantedCall]:
        wanted = wanted_calls(row, expected)
        if not wanted and may_be_more and order != "exact":
            raise CallsError(f"{expected!r} wants no call, so that any would do: give extra=False")
        return wanted

    def refuse_row(truth: Any, row: Mapping[str, Any]) -> str | None:
        try:
            read(row)
        except CallsError as error:
            return str(error)
        return None

    def tools(
        messages: Sequence[Mapping[str, Any]], ground_truth: Any, metadata: Mapping[str, Any]
    ) -> Verdict:
        try:
            wanted = read(metadata)
        except CallsError as error:
            raise ValueError(f"tools: {error}") from None
        calls = without_repeated(tool_calls(messages))
        difference = first_difference(
            calls, wanted, order=order, extra=may_be_more, matches=matches
        )
        return _verdict(difference is None, difference or "")

    vars(tools).update(refuse_row=refuse_row)
    return tools


def no_tool_errors() -> ConversationScorer:
    """Score 1 where no tool call failed; `ToolCall.error` says which did."""

    def no_tool_errors(messages: Sequence[Mapping[str, Any]]) -> Verdict:
        failed = [call for call in tool_calls(messages) if call.error is not None]
        return _verdict(
            not failed, "; ".join(f"{call.name}: {_short(call.error)}" for call in failed[:3])
        )

    return no_tool_errors


@_with_settings
def judge(
    rubric: str,
    *,
    model: str,
    scale: tuple[float, float] = (0.0, 1.0),
    votes: int = 1,
    api_key_env: str | None = None,
    api_base: str | None = None,
) -> Judge:
    """Score by a rubric, with the model `provider/model` as the judge, within `scale`.

    The rubric is a text, or the name of a ready one: "correct", "faithful", "helpful", "safe". Its
    explanation is the reason. With `votes` it is asked so often, and the median counts.
    """
    from .providers import parse_model_name
    from .rubric.criteria import CRITERIA
    from .rubric.evaluation import check_votes
    from .rubric.judge import reason_of
    from .rubric.settings import judge_settings

    if rubric not in CRITERIA and re.fullmatch(r"\w+", rubric.strip()):
        ready = ", ".join(CRITERIA)
        raise ValueError(f"judge: there is no ready rubric {rubric!r}, only {ready}")

    if type(scale) not in (tuple, list) or len(scale) != 2:
        raise ValueError(f"judge: scale is two numbers, such as (0, 1), not {scale!r}")
    parsed = parse_model_name(model)
    given = {"api_key_env": api_key_env, "api_base": api_base}
    info = {"provider": parsed.provider, "model": parsed.model}
    info |= {name: value for name, value in given.items() if value is not None}
    bounds = {"score_min": scale[0], "score_max": scale[1]}
    check_votes(votes)
    judge_settings(info, **bounds, needs_key=False)

    async def judge(solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any]) -> Verdict:
        answer = answer_in(solution_str)
        if answer is None:
            return {"score": scale[0], "reason": CUT}
        truth = ground_truth
        if isinstance(truth, list):
            truth = f"Any one of these: {_json_text(truth)}" if len(truth) > 1 else truth[0]
        details = await aevaluate_rubric(
            CRITERIA.get(rubric, rubric),
            answer,
            info,
            ground_truth=truth,
            original_input=extra_info.get("user_prompt"),
            metadata=_columns_of(extra_info) if rubric == "faithful" else None,
            **bounds,
            votes=votes,
            return_details=True,
        )
        return {"score": details["score"], "reason": reason_of(details)}

    if rubric == "correct":
        vars(judge)["refuse_ground_truth"] = _refuse_blank
    return judge


def named(text: str) -> Callable[..., Any] | None:
    """Return the scorer that a text such as `number(tolerance=0.01)` names; None for other text.

    Raises:
        ValueError: for a name that none has, or arguments that are wrong or no literals.
    """
    text = text.strip()
    if _CALL.fullmatch(text) is None:
        return None
    name = text.partition("(")[0]
    known = [scorer for scorer in __all__ if scorer != "Verdict"]
    if name not in known:
        from difflib import get_close_matches  # only for a mistake

        close = get_close_matches(name.lower().replace("-", "_"), known, n=1)
        hint = f". Did you mean {close[0]!r}?" if close else ""
        there = ", ".join(known)
        raise ValueError(f"no scorer {name!r}; there are {there}, or module:function{hint}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d", which stays as it is written
            call: Any = ast.parse(text if text.endswith(")") else f"{text}()", mode="eval").body
        positional = [ast.literal_eval(argument) for argument in call.args]
        keywords = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError("its arguments must be literals, such as 0.01, 'text' or True") from None
    if not isinstance(call.func, ast.Name):
        raise ValueError(f"one pair of brackets makes a scorer: {name}(…)")
    try:
        make = globals()[name]
        scorer: Callable[..., Any] = make(*positional, **keywords)
    except TypeError as error:
        taken = ", ".join(inspect.signature(make).parameters) or "no settings"
        raise ValueError(f"{error}; it takes {taken}") from None
    return scorer


Fault = tuple[str, str]
"""What is wrong with a ground truth, and what may be done about it."""


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts_of(truth: Any) -> list[str]:
    """Return the texts of a ground truth: of a list each of its values, of which any is right."""
    if truth is None:
        return [""]
    return [*map(_json_text, truth)] if isinstance(truth, list) else [_json_text(truth)]


def _scorer(
    name: str,
    compare: Callable[[str, str], Verdict],
    *,
    compares: bool = True,
    refuse: Callable[[str], Fault | None] = lambda truth: None,
    refuse_all: Callable[[Sequence[str]], Fault | None] = lambda truths: None,
    read: Callable[[Any], list[str]] = _texts_of,
) -> AnswerScorer:
    """Return the scorer that compares answers with ground truths.

    `refuse` says what is wrong with one that is not blank, `refuse_all` with all that are right.
    Without `compares` it needs none. `read` returns the texts of a ground truth, of which any is
    right.
    """

    def refuse_ground_truth(truth: Any) -> Fault | None:
        texts = read(truth)
        values = truth if isinstance(truth, list) else [truth]
        if read is _texts_of and any(isinstance(value, dict | list) for value in values):
            return "holds an object", "; json_equal compares JSON"
        if truth is None or not texts or any(map(is_blank, texts)):
            return f"is {'missing' if truth is None else 'blank'}", ""
        fault = next((fault for text in texts if (fault := refuse(text))), None)
        return fault or refuse_all(texts)

    def scorer(solution_str: str, ground_truth: Any = None) -> Verdict:
        if compares and (fault := refuse_ground_truth(ground_truth)):
            raise ValueError(f"{name} compares with the ground truth, which {''.join(fault)}")
        answer = answer_in(solution_str)
        if answer is None:
            return _verdict(False, CUT)
        verdicts = [compare(answer, text) for text in read(ground_truth)]
        best = max(verdicts, key=lambda verdict: verdict["score"])
        if len(verdicts) > 1 and "reason" in best:
            best["reason"] += f", the first of {len(verdicts)} that would be right"
        return best

    scorer.__name__ = scorer.__qualname__ = name
    if compares:
        vars(scorer)["refuse_ground_truth"] = refuse_ground_truth
    return scorer


def _letter_of(truth: str) -> str | None:
    """Return the one letter that a ground truth is, where its script has words."""
    letter = fold(truth).strip(" .:()[]*\"'")
    is_word = len(letter) == 1 and letter.lower() != letter.upper()
    return letter if is_word else None


def _names_letter(answer: str, letter: str) -> Verdict:
    """Compare an answer with a letter, which is a word of many answers that do not mean it."""
    given = _letter_of(answer)
    if given is None and letter.upper() in LETTERS.labels:
        chosen = chosen_option(answer, LETTERS)
        given = LETTERS.labels[chosen] if isinstance(chosen, int) else None
    is_named = given is not None and given.upper() == letter.upper()
    return _verdict(is_named, f"{letter!r} is not what {_short(answer)} names")


def _refuse_letters(truths: Sequence[str]) -> Fault | None:
    if None in map(_letter_of, truths):
        return None
    return (
        f"is {truths[0].strip()!r}, one letter, which is a word of many answers",
        r"; try exact, or regex with a group, such as regex('answer is \(?([A-D])', group=1)",
    )


def _refuse_no_number(truth: str) -> Fault | None:
    if read_truth(truth) is not None:
        return None
    return f"is {_short(truth)}, not one number", "; exact compares any text"


def _refuse_blank(truth: Any) -> Fault | None:
    is_missing = truth is None or truth == []
    if is_missing or (isinstance(truth, str) and is_blank(truth)):
        return f"is {'missing' if is_missing else 'blank'}", ""
    return None


def _columns_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a judge of faithfulness reads besides the question: the row's own columns."""
    named = ("system_prompt", "user_prompt", "ground_truth", "messages")
    return {name: value for name, value in row.items() if name not in named}


def _refuse_no_words(truth: str) -> Fault | None:
    return None if _squad_words(truth) else (f"is {_short(truth)}, which has no words", "")


def _squad_words(text: str) -> list[str]:
    kept = "".join(
        f" {character} " if is_spaceless(character) else character
        for character in fold(fold(text).casefold())
        if unicodedata.category(character)[0] != "P" and character not in punctuation
    )
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def _refuse_no_json(truth: str) -> Fault | None:
    return None if _decode(truth) else (f"is {_short(truth)}, not JSON", "")


def _verdict(right: bool, reason: str) -> Verdict:
    return {"score": 1.0} if right else {"score": 0.0, "reason": reason}


def _same(given: str, wanted: str) -> Verdict:
    reason = f"{_short(given)}, wanted {_short(wanted)}"
    if given != wanted:
        reason += difference(given, wanted, shown=SHOWN)
    return _verdict(given == wanted, reason)


def _folded(text: str, ignore_case: bool) -> str:
    return fold(fold(text).casefold()) if ignore_case else fold(text)


def _shown(value: Fraction) -> str:
    """Return a number as it is written: decimal where that ends."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return _short(value, quoted=False)
    exact = Context(prec=2_000).divide(Decimal(value.numerator), Decimal(value.denominator))
    return _short(f"{exact:f}", quoted=False)


def _short(value: object, *, quoted: bool = True) -> str:
    text = str(value)
    cut = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return repr(cut) if quoted else cut


def _compiled(pattern: str, group: int | str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"regex: {pattern!r}: {error}") from None
    known = {*range(compiled.groups + 1), *compiled.groupindex}
    if group not in known:
        raise ValueError(f"regex: {pattern!r} has no group {group!r}")
    return compiled


def _json_in(text: str) -> tuple[Any] | None:
    """Return the JSON value of an answer, in a tuple: all of it, a fence's, or the last in it."""
    for candidate in (text, *reversed(_FENCED.findall(text))):
        if (value := _decode(candidate)) is not None:
            return value
    last, end = None, 0
    for bracket in _JSON_START.finditer(text):
        if bracket.start() >= end:
            try:
                last, end = _DECODER.raw_decode(text, bracket.start())
            except RecursionError:
                return None
            except ValueError:
                pass
    return None if last is None else (last,)


def _decode(text: str) -> tuple[Any] | None:
    try:
        return (_DECODER.decode(text.strip()),)
    except (ValueError, RecursionError):
        return None


def _differences(given: Any, wanted: Any, path: str, ignored: frozenset[str]) -> Iterator[str]:
    """Yield how two JSON values differ; true is not 1, and 1.0 is."""
    if isinstance(given, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in given if key not in wanted)]:
            if key in ignored:
                continue
            place = f"{path}.{key}" if path else key
            if key not in given:
                yield f"{place} is missing"
            elif key not in wanted:
                yield f"{place} is not wanted"
            else:
                yield from _differences(given[key], wanted[key], place, ignored)
    elif isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted):
        for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]", ignored)
    elif isinstance(given, str) and isinstance(wanted, str) and fold(given) == fold(wanted):
        return
    elif given != wanted or isinstance(given, bool) != isinstance(wanted, bool):
        yield f"{path or 'it'} is {_as_json(given)}, wanted {_as_json(wanted)}"


def _as_json(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False), quoted=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
