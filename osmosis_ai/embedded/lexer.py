"""A sentence as tokens: numbers, operators and the words that arithmetic is spoken with.

Words that say nothing about arithmetic are dropped here, so that "What is the sum of 3 and 4?"
arrives at the parser as `sum 3 and 4 .`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MAX_TOKENS = 400
_MAX_DIGITS = 40


class Token(NamedTuple):
    """A kind that the grammar names, and the text behind it (digits for a number)."""

    kind: str
    text: str


_PATTERN = re.compile(
    r"(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
    r"|(?P<word>[a-z]+(?:-[a-z]+)*)"
    r"|(?P<symbol>[-+*/(),.;:?!\n×÷·−–])"
)

_SYMBOLS = {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}
_BOUNDARIES = frozenset(".;:?!\n")

_WORDS = {
    "plus": "+",
    "added": "+",
    "increased": "+",
    "minus": "-",
    "decreased": "-",
    "reduced": "-",
    "times": "*",
    "multiplied": "*",
    "divided": "/",
    "add": "add",
    "adding": "add",
    "subtract": "subtract",
    "subtracting": "subtract",
    "take": "subtract",
    "multiply": "multiply",
    "multiplying": "multiply",
    "divide": "divide",
    "dividing": "divide",
    "double": "double",
    "halve": "halve",
    "twice": "twice",
    "half": "half",
    "sum": "sum",
    "total": "sum",
    "difference": "difference",
    "product": "product",
    "quotient": "quotient",
    "and": "and",
    "by": "by",
    "to": "to",
    "from": "from",
    "then": ".",
    "it": "it",
    "that": "it",
    "result": "it",
    "answer": "it",
}
_SWALLOWS = {
    "added": "to",
    "increased": "by",
    "decreased": "by",
    "reduced": "by",
    "multiplied": "by",
    "divided": "by",
}

_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: 10 * (tens + 2) for tens, word in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text`, at most 400 of them."""
    tokens: list[Token] = []
    spoken = _SpokenNumber()
    swallow = ""
    for match in _PATTERN.finditer(text.lower()):
        if len(tokens) >= _MAX_TOKENS:
            break
        found = match.group()
        if match.lastgroup == "word":
            if spoken.takes(found):
                continue
            tokens += spoken.flushed()
            if found == "x" and tokens and tokens[-1].kind in ("number", ")"):
                tokens.append(Token("*", found))
            elif found != swallow and found in _WORDS:
                tokens.append(Token(_WORDS[found], found))
            swallow = _SWALLOWS.get(found, "")
            continue
        tokens += spoken.flushed()
        swallow = ""
        tokens += _number(found) if match.lastgroup == "number" else _symbol(found)
    return tokens + spoken.flushed()


def _number(found: str) -> list[Token]:
    digits = found.replace(",", "")
    return [Token("number", digits)] if len(digits) <= _MAX_DIGITS else []


def _symbol(found: str) -> list[Token]:
    kind = "." if found in _BOUNDARIES else _SYMBOLS.get(found, found)
    return [Token(kind, kind)]


class _SpokenNumber:
    """Collects "two hundred thirty-five" word by word."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def takes(self, word: str) -> bool:
        parts = word.split("-")
        known = all(part in _NUMBER_WORDS or part in _SCALES for part in parts)
        if not known or (not self._parts and parts[0] in _SCALES):
            return False
        self._parts += parts
        return True

    def flushed(self) -> list[Token]:
        if not self._parts:
            return []
        total = group = 0
        for part in self._parts:
            scale = _SCALES.get(part)
            if scale is None:
                group += _NUMBER_WORDS[part]
            elif scale == 100:
                group *= scale
            else:
                total, group = total + group * scale, 0
        self._parts.clear()
        return [Token("number", str(total + group))]
