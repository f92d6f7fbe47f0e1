"""The text of a model without the reasoning that some servers leave in it.

Reasoning is a `<think>`, `<thinking>` or `<reasoning>` element that opens the text, or all before
a closing tag that was never opened (templates cut the opening one). Such a tag further on, or
within code, is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAMES = "think|thinking|reasoning"
_OPENING = re.compile(rf"[\s\ufeff]*<(?:{_NAMES})(?:\s[^<>]*)?(/?)>", re.IGNORECASE)
_TAG_OR_CODE = re.compile(
    rf"```.*?```|`[^`\n]+`|<(?P<closes>/?)\s*(?:{_NAMES})(?:\s[^<>]*)?>", re.DOTALL | re.IGNORECASE
)
_CLOSING = re.compile(rf"</\s*(?:{_NAMES})\s*>", re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """Return the answer in a text; empty where the text was cut within its reasoning."""
    return answer_in(text) or ""


def answer_in(text: str) -> str | None:
    """Return the answer in a text; None where the text was cut within its reasoning."""
    rest = behind_reasoning(text)
    if rest is None or "<" not in rest:
        return rest
    end = max((end for end, is_lone in _closing_tags(rest, 0) if is_lone), default=0)
    return rest[end:].lstrip() if end else rest


def behind_reasoning(text: str) -> str | None:
    """Return what follows the reasoning elements that open a text; None where one has no end."""
    start = 0
    while opening := _OPENING.match(text, start):
        start = opening.end()
        if not opening[1]:
            end = _end_of_element(text, start)
            if end is None:
                return None
            start = end
    return text[start:].lstrip() if start else text


def _end_of_element(text: str, start: int) -> int | None:
    """Return where the element whose content starts there ends."""
    end = None
    for end, is_lone in _closing_tags(text, start):
        if is_lone:
            return end
    if end is None:  # an unfinished block of code in it may hide the tag
        tag = _CLOSING.search(text, start)
        return None if tag is None else tag.end()
    return end  # it speaks of such tags


def _closing_tags(text: str, start: int) -> Iterator[tuple[int, bool]]:
    """Yield where closing tags outside of code end, and whether `start` is behind their opening."""
    depth = 0
    for tag in _TAG_OR_CODE.finditer(text, start):
        if (closes := tag["closes"]) is None:
            continue
        if not closes:
            depth += 1
            continue
        yield tag.end(), depth == 0
        depth = max(0, depth - 1)
