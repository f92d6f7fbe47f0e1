"""What a judge said -> a verdict, by one strict reading.

A reply may think aloud first (`<think>…</think>`), wrap its JSON in a fence, a list or prose, or
say it twice: one verdict must be there, wherever it stands. Verdicts that differ are none, because
a candidate's text may quote one. What is inside a string or a torn object is never taken for a
verdict.

Knows neither bounds nor providers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ..reasoning import behind_reasoning

MAX_REPLY_CHARS = 1_000_000
MAX_EXPLANATION_CHARS = 4_000

_OBJECT_START = re.compile(r'\{(?:\s*"|[ \t\n\r]*\})')
_OTHER_FORM = re.compile(
    r"['“”]score['“”]\s*:|\\+\"score\\+\"\s*:|\{\s*score\s*:|<score>", re.IGNORECASE
)
"""A verdict that is nearly JSON: it may be the judge's, and the JSON beside it a quotation."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LAST_WORD = re.compile(r"\s\S{0,1000}$")


class BadVerdict(ValueError):
    """The reply has not one clear verdict; `str()` says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer as given, not yet brought within any bounds."""

    score: float
    explanation: str


def read_verdict(text: str) -> Verdict:
    """Return the one verdict in `text`; raise `BadVerdict`."""
    if len(text) > MAX_REPLY_CHARS:
        raise BadVerdict(f"the reply is {len(text)} characters long")
    objects = _objects(text)
    if not objects:
        raise BadVerdict("no complete JSON object")
    verdicts = [_verdict(verdict) for verdict in objects if "score" in verdict]
    if not verdicts:
        raise BadVerdict("the reply has no 'score'")
    scores = dict.fromkeys(verdict.score for verdict in verdicts)
    if len(scores) > 1:
        raise BadVerdict(f"verdicts that differ: {', '.join(f'{score:g}' for score in scores)}")
    return verdicts[0]


def is_quoted(verdict: Verdict, text: str) -> bool:
    """Return whether the verdict stands in `text`, word for word: then it is not the judge's."""
    forms = {verdict.explanation, *(_encoded(verdict.explanation, each) for each in (True, False))}
    quoted = "|".join(map(re.escape, forms))
    return re.search(rf"explanation\W{{1,8}}(?:{quoted})", text) is not None


def printable(text: str, limit: int = MAX_EXPLANATION_CHARS) -> str:
    """`text` cut to `limit` characters, its control characters and lone surrogates escaped.

    No word is cut in two: a key would no longer be recognised.
    """
    cut = text if len(text) <= limit else _LAST_WORD.sub("", text[: limit - 1]) + "…"
    return "".join(c if c in "\n\t" or c.isprintable() else _escaped(c) for c in cut)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects that may be a verdict; none where others beside them cannot be read."""
    whole = _decode_whole(text)
    if whole is not None:
        return [*_may_be_verdicts(whole)]
    answer = behind_reasoning(text) or ""
    objects: list[dict[str, Any]] = []
    between: list[str] = []
    end = 0
    while start := _OBJECT_START.search(answer, end):
        try:
            value, after = _DECODER.raw_decode(answer, start.start())
        except (ValueError, RecursionError):
            return []  # those inside or after a torn one may be quoted in it
        between.append(answer[end : start.start()])
        objects += _may_be_verdicts(value)
        end = after
    if objects and any(map(_OTHER_FORM.search, [*between, answer[end:]])):
        raise BadVerdict("a verdict in JSON, and one in another form")
    return objects


def _decode_whole(text: str) -> Any:
    """Return `text` as one value: then a `</think>` in it is inside a string and means nothing."""
    try:
        value = _DECODER.decode(text.strip().removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _may_be_verdicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects of a JSON value, and those inside that have a verdict's keys."""
    rest = [(value, True)]
    while rest:
        item, is_outermost = rest.pop()
        if isinstance(item, dict):
            plain = {key.strip().lower(): value for key, value in item.items()}
            if is_outermost or {"score", "explanation"} <= plain.keys():
                yield plain
            rest += [(inner, False) for inner in item.values()]
        elif isinstance(item, list):
            rest += [(inner, is_outermost) for inner in reversed(item)]


def _verdict(fields: dict[str, Any]) -> Verdict:
    return Verdict(_score(fields), _explanation(fields))


def _score(fields: dict[str, Any]) -> float:
    value = fields["score"]
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadVerdict(f"the score must be a number, not {_describe(value)}")
    try:
        score = float(value)
    except OverflowError:
        score = math.inf
    if not math.isfinite(score):
        raise BadVerdict("the score must be a finite number")
    return score


def _explanation(fields: dict[str, Any]) -> str:
    value = fields.get("explanation")
    if not isinstance(value, str):
        raise BadVerdict(f"the explanation must be a string, not {_describe(value)}")
    if not value.strip():
        raise BadVerdict("the explanation is empty")
    return printable(value.strip())


def _describe(value: object) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return printable(json.dumps(value), 60)


def _encoded(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len({key.strip().lower() for key in fields}) != len(pairs):
        raise ValueError("a key is given twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_no_constant)
