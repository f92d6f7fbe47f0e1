"""Lines for a terminal: which parts are coloured, where a long line is broken, ASCII instead.

Works on finished lines of text, wherever they were made. Pure; knows no terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Literal

Style = Literal["plain", "good", "bad", "doubt", "strong", "dim"]

USUAL_WIDTH = 80
_LABEL = re.compile(
    r"  (?:(?:system|developer|user|assistant|tool|function) +"
    r"|ground truth  |(?:answer|reason) {8})"
)
_BLANKS = re.compile(r" {13,}(?![ ~^])")  # not the marks below a line of code
_MARKED: tuple[tuple[re.Pattern[str], Style], ...] = (
    (re.compile(r"\bPASSED$"), "good"),
    (re.compile(r"\bFAILED$"), "bad"),
    (re.compile(r"\bINCONCLUSIVE$"), "doubt"),
    (re.compile(r"^ +PASSED(?=: )"), "good"),
    (re.compile(r"^ +FAILED(?=: )"), "bad"),
    (re.compile(r"^ +INCONCLUSIVE(?=: )"), "doubt"),
    (re.compile(r"^(?:\S+ )*worse(?=: mean )"), "bad"),
    (re.compile(r"^(?:\S+ )*better(?=: mean )"), "good"),
    (re.compile(r"^    regressed(?=  )"), "bad"),
    (re.compile(r"^    improved(?=   )"), "good"),
    (re.compile(r"^(?:ERROR|stopped)(?=: )"), "bad"),
    (re.compile(r"^(?:interrupted|not complete|partial)(?=: )"), "doubt"),
    (re.compile(r"^(?:eval function|  metric|.*  rows  ) .*$"), "strong"),
    (re.compile(r"^\S.* \(\d+ of \d+ runs? passed\)$"), "strong"),
    (re.compile(r"^  \(\d+ messages? left out\)$"), "dim"),
    (re.compile(r"^  \d+ turns?, .*$"), "dim"),
    (re.compile(r"^  conversation: .*$"), "dim"),
    (re.compile(r"^  ground truth(?=  )"), "good"),
    (re.compile(r"^  (?:system|developer|user|assistant|tool|answer|reason)(?=  )"), "strong"),
)  # fmt: skip
_ASCII = str.maketrans(
    {"…": "...", "→": "->", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"', "×": "x", "≥": ">="}
)


def coloured(line: str) -> Iterator[tuple[str, Style]]:
    """Yield the parts of a line with the style of each."""
    for pattern, style in _MARKED:
        if found := pattern.search(line):
            start, end = found.span()
            parts: tuple[tuple[str, Style], ...] = (
                (line[:start], "plain"),
                (line[start:end], style),
                (line[end:], "plain"),
            )
            yield from (part for part in parts if part[0])
            return
    yield line, "plain"


def hanging(line: str, width: int) -> list[str]:
    """Return the line of a conversation, broken between words below where its text begins.

    Lines of code and of tracebacks stay as they are.
    """
    found = _LABEL.match(line) or _BLANKS.match(line)
    if len(line) <= width or found is None:
        return [line]
    indent = found.end() if width - found.end() >= 20 else 4
    return wrap(line[found.end() :], width, initial_indent=found[0],
                subsequent_indent=" " * indent, break_on_hyphens=False) or [line]  # fmt: skip


def sentence(line: str, width: int) -> list[str]:
    """Return a line, broken between words where the terminal is narrower than usual.

    Indented lines stay as they are.
    """
    if len(line) <= width or width >= USUAL_WIDTH or line.startswith(" "):
        return [line]
    return wrap(line, width, subsequent_indent="  ", break_on_hyphens=False)


def as_ascii(text: str) -> str:
    """Return the text with the signs that the plugin itself uses in ASCII; the rest as it is."""
    return text if text.isascii() else text.translate(_ASCII)
