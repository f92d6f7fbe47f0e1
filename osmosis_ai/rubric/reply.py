"""What a judge said -> a verdict, by one strict reading.

A reply may think aloud first (`<think>…</think>`), wrap its JSON in a fence or in prose, or say it
twice: the last complete object counts. What is inside a string or inside a torn object is never
taken for a verdict, so a candidate that the judge quotes cannot speak for the judge.

Knows neither bounds nor providers.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_REPLY_CHARS = 1_000_000
MAX_EXPLANATION_CHARS = 4_000

_OBJECT_START = re.compile(r'\{(?:\s*"|[ \t\n\r]*\})')
_THOUGHTS = r"(?:think|thinking|thought|reasoning)>"
_THOUGHTS_END = re.compile(rf".*</{_THOUGHTS}", re.DOTALL | re.IGNORECASE)
_TORN_THOUGHTS = re.compile(rf"\s*<{_THOUGHTS}", re.IGNORECASE)
"""Thinking that was cut off before its end: what is in there was never the judge's word."""

_LAST_WORD = re.compile(r"\s\S{0,1000}$")


class NotJSON(ValueError):
    """The reply holds no complete JSON object: worth one reminder."""


class BadVerdict(ValueError):
    """The reply's object is no verdict: its score or its explanation is unusable."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer as given, not yet brought within any bounds."""

    score: float
    explanation: str


def read_verdict(text: str) -> Verdict:
    """Return the verdict in `text`; raise `NotJSON` or `BadVerdict`."""
    if len(text) > MAX_REPLY_CHARS:
        raise BadVerdict(f"the reply is {len(text)} characters long")
    found = _last_object(text)
    return Verdict(_score(found), _explanation(found))


def printable(text: str, limit: int = MAX_EXPLANATION_CHARS) -> str:
    """`text` cut to `limit` characters, its control characters and lone surrogates escaped.

    No word is cut in two: a key would no longer be recognised.
    """
    cut = text if len(text) <= limit else _LAST_WORD.sub("", text[: limit - 1]) + "…"
    return "".join(c if c in "\n\t" or c.isprintable() else _escaped(c) for c in cut)


def _last_object(text: str) -> dict[str, Any]:
    whole = _decode_whole(text)
    if whole is not None:
        return whole
    thoughts = _THOUGHTS_END.match(text)
    said = text if thoughts is None else text[thoughts.end() :]
    objects = [] if _TORN_THOUGHTS.match(said) else _objects_in(said)
    if not objects:
        raise NotJSON("the reply holds no complete JSON object")
    with_score = [found for found in objects if "score" in found]
    return (with_score or objects)[-1]


def _decode_whole(text: str) -> dict[str, Any] | None:
    """Return `text` as one object: then a `</think>` in it is inside a string and means nothing."""
    try:
        found = _DECODER.decode(text.strip().removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _objects_in(text: str) -> list[dict[str, Any]]:
    """Return the outermost complete objects; none of those inside or after a torn one."""
    objects: list[dict[str, Any]] = []
    start = _OBJECT_START.search(text)
    while start is not None:
        try:
            found, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            return []
        objects.append(found)
        start = _OBJECT_START.search(text, end)
    return objects


def _score(found: dict[str, Any]) -> float:
    if "score" not in found:
        raise BadVerdict("the reply has no 'score'")
    value = found["score"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadVerdict(f"the score must be a number, not {_describe(value)}")
    try:
        score = float(value)
    except OverflowError:
        score = math.inf
    if not math.isfinite(score):
        raise BadVerdict("the score must be a finite number")
    return score


def _explanation(found: dict[str, Any]) -> str:
    value = found.get("explanation")
    if not isinstance(value, str):
        raise BadVerdict(f"the explanation must be a string, not {_describe(value)}")
    if not value.strip():
        raise BadVerdict("the explanation is empty")
    return printable(value.strip())


def _describe(value: object) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return printable(json.dumps(value), 60)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
