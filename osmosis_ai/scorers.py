"""Ready eval functions: each function here makes one, with its settings.

They are used as values (`close = scorers.number(tolerance=0.01)`), and by name on the command line
(`--eval-fn includes`, `--eval-fn "number(tolerance=0.01)"`), where `named` reads literals alone and
executes nothing. A `Verdict` has a reason wherever the score is not full. An answer that cannot be
read is wrong; a row without what a scorer needs is an error.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn, TypedDict

from .agents.tool_calls import tool_calls
from .rubric import aevaluate_rubric

__all__ = [
    "Verdict",
    "exact",
    "includes",
    "json_equal",
    "json_schema",
    "judge",
    "no_tool_errors",
    "number",
    "regex",
    "tool_called",
]

SHOWN = 80
"""Characters of an answer or a value that a reason quotes."""
_NUMBER = re.compile(r"(?<!\w)-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_CALL = re.compile(r"[a-z_]+(?:\(.*\))?", re.DOTALL)


class _Score(TypedDict):
    score: float


class Verdict(_Score, total=False):
    """A score from 0 to 1, and why it is not full."""

    reason: str


AnswerScorer = Callable[[str, str | None], Verdict]
"""Called with the answer and the ground truth."""
ConversationScorer = Callable[[Sequence[Mapping[str, Any]]], Verdict]
"""Called with the messages."""
Judge = Callable[[str, str | None, Mapping[str, Any]], Awaitable[Verdict]]
"""Called with the answer, the ground truth and the row."""


def exact(*, ignore_case: bool = False, strip: bool = True) -> AnswerScorer:
    """Score 1 where the answer is the ground truth; `strip`: whatever white space is around it."""

    def exact(solution_str: str, ground_truth: str | None) -> Verdict:
        said, wanted = (
            _folded(text.strip() if strip else text, ignore_case)
            for text in (solution_str, _truth(ground_truth, "exact"))
        )
        return _verdict(said == wanted, f"{_short(said)}, wanted {_short(wanted)}")

    return _compares(exact)


def includes(*, ignore_case: bool = True) -> AnswerScorer:
    """Score 1 where the ground truth is somewhere in the answer."""

    def includes(solution_str: str, ground_truth: str | None) -> Verdict:
        wanted = _truth(ground_truth, "includes")
        found = _folded(wanted.strip(), ignore_case) in _folded(solution_str, ignore_case)
        return _verdict(found, f"{_short(wanted)} is not in {_short(solution_str)}")

    return _compares(includes)


def regex(pattern: str, *, group: int | str = 0) -> AnswerScorer:
    """Score 1 where the pattern is found in the answer.

    With a `group`, by number or name, the text of that group must be the ground truth besides.
    """
    compiled = _compiled(pattern, group)

    def regex(solution_str: str, ground_truth: str | None) -> Verdict:
        found = compiled.search(solution_str)
        if found is None or group == 0:
            return _verdict(found is not None, f"no {pattern!r} in {_short(solution_str)}")
        said, wanted = (found[group] or "").strip(), _truth(ground_truth, "regex").strip()
        return _verdict(said == wanted, f"{_short(said)}, wanted {_short(wanted)}")

    return regex if group == 0 else _compares(regex)


def number(*, tolerance: float = 0.0, relative: float = 0.0) -> AnswerScorer:
    """Score 1 where the last number of the answer is that of the ground truth.

    It may differ by `tolerance`, or by the share `relative` of the ground truth: 0.01 is 1 %.
    """
    if not (tolerance >= 0.0 and relative >= 0.0):
        raise ValueError("number: tolerance and relative are numbers from 0 on")

    def number(solution_str: str, ground_truth: str | None) -> Verdict:
        wanted = _last_number(_truth(ground_truth, "number"))
        if wanted is None:
            raise ValueError(f"number: the ground truth {ground_truth!r} has no number")
        said = _last_number(solution_str)
        if said is None:
            return _verdict(False, f"no number in {_short(solution_str)}")
        allowed = max(Decimal(str(tolerance)), Decimal(str(relative)) * abs(wanted))
        return _verdict(abs(said - wanted) <= allowed, f"{said}, wanted {wanted}")

    return _compares(number)


def json_equal(*, ignore: Iterable[str] = ()) -> AnswerScorer:
    """Score 1 where the JSON of the answer is that of the ground truth.

    Text around it, and a code fence, are passed over; keys in `ignore` count nowhere.
    """
    ignored = frozenset([ignore] if isinstance(ignore, str) else ignore)

    def json_equal(solution_str: str, ground_truth: str | None) -> Verdict:
        wanted = _decode(_truth(ground_truth, "json_equal"))
        if wanted is None:
            raise ValueError(f"json_equal: the ground truth {_short(ground_truth)} is not JSON")
        said = _json_in(solution_str)
        if said is None:
            return _verdict(False, f"no JSON in {_short(solution_str)}")
        differences = [*_differences(said[0], wanted[0], "", ignored)]
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        return _verdict(not differences, "; ".join(differences[:3]) + more)

    return _compares(json_equal)


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

    def json_schema(solution_str: str, ground_truth: str | None = None) -> Verdict:
        said = _json_in(solution_str)
        if said is None:
            return _verdict(False, f"no JSON in {_short(solution_str)}")
        error = best_match(validator.iter_errors(said[0]))
        where = "" if error is None else f"{error.json_path}: {error.message}"
        return _verdict(error is None, where)

    return json_schema


def tool_called(name: str, **arguments: Any) -> ConversationScorer:
    """Score 1 where the tool was called, with at least these arguments."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())

    def tool_called(messages: Sequence[Mapping[str, Any]]) -> Verdict:
        calls = tool_calls(messages)
        made = [f"{each.name}({json.dumps(each.arguments)})" for each in calls] or ["nothing"]
        return _verdict(
            any(each.matches(name, arguments) for each in calls),
            f"no call {name}({given}); called {_short(', '.join(made), quoted=False)}",
        )

    return tool_called


def no_tool_errors() -> ConversationScorer:
    """Score 1 where no tool call failed; `ToolCall.error` says which did."""

    def no_tool_errors(messages: Sequence[Mapping[str, Any]]) -> Verdict:
        failed = [each for each in tool_calls(messages) if each.error is not None]
        return _verdict(
            not failed, "; ".join(f"{each.name}: {_short(each.error)}" for each in failed[:3])
        )

    return no_tool_errors


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

    Its explanation is the reason. With `votes` it is asked so often, and the median counts.
    """
    from .providers import parse_model_name
    from .rubric.judge import reason_of

    parsed = parse_model_name(model)
    given = {"api_key_env": api_key_env, "api_base": api_base}
    info = {"provider": parsed.provider, "model": parsed.model}
    info |= {name: value for name, value in given.items() if value is not None}

    async def judge(
        solution_str: str, ground_truth: str | None, extra_info: Mapping[str, Any]
    ) -> Verdict:
        details = await aevaluate_rubric(
            rubric,
            solution_str,
            info,
            ground_truth=ground_truth,
            original_input=extra_info.get("user_prompt"),
            score_min=scale[0],
            score_max=scale[1],
            votes=votes,
            return_details=True,
        )
        return {"score": details["score"], "reason": reason_of(details)}

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
    known = [each for each in __all__ if each != "Verdict"]
    if name not in known:
        raise ValueError(f"no scorer {name!r}; there are {', '.join(known)}, or module:function")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d", which stays as it is written
            call: Any = ast.parse(text if text.endswith(")") else f"{text}()", mode="eval").body
        positional = [ast.literal_eval(each) for each in call.args]
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError("its arguments must be literals, such as 0.01, 'text' or True") from None
    try:
        make = globals()[name]
        scorer: Callable[..., Any] = make(*positional, **keywords)
    except TypeError as error:
        raise ValueError(
            f"{error}; it takes {', '.join(inspect.signature(make).parameters)}"
        ) from None
    return scorer


def _compares(scorer: AnswerScorer) -> AnswerScorer:
    """Mark a scorer that needs the ground truth of every row."""
    vars(scorer)["needs_ground_truth"] = True
    return scorer


def _verdict(right: bool, reason: str) -> Verdict:
    return {"score": 1.0} if right else {"score": 0.0, "reason": reason}


def _truth(ground_truth: str | None, name: str) -> str:
    if ground_truth is None:
        raise ValueError(f"{name} compares with the ground truth, and the row has none")
    return ground_truth


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


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


def _last_number(text: str) -> Decimal | None:
    found = _NUMBER.findall(text)
    return Decimal(found[-1].replace(",", "")) if found else None


def _json_in(text: str) -> tuple[Any] | None:
    """Return the JSON value of an answer, in a tuple: all of it, a fence's, or the last in it."""
    for candidate in (text, *reversed(_FENCED.findall(text))):
        if (found := _decode(candidate)) is not None:
            return found
    last, end = None, 0
    for bracket in re.finditer(r"[{\[]", text):
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


def _differences(said: Any, wanted: Any, path: str, ignored: frozenset[str]) -> Iterator[str]:
    """Yield how two JSON values differ; true is not 1, and 1.0 is."""
    if isinstance(said, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in said if key not in wanted)]:
            if key in ignored:
                continue
            place = f"{path}.{key}" if path else key
            if key not in said:
                yield f"{place} is missing"
            elif key not in wanted:
                yield f"{place} is not wanted"
            else:
                yield from _differences(said[key], wanted[key], place, ignored)
    elif isinstance(said, list) and isinstance(wanted, list) and len(said) == len(wanted):
        for index, (one, other) in enumerate(zip(said, wanted, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]", ignored)
    elif said != wanted or isinstance(said, bool) != isinstance(wanted, bool):
        yield f"{path or 'it'} is {_as_json(said)}, wanted {_as_json(wanted)}"


def _as_json(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False), quoted=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
