"""Where a text stands in another as whole words, as far as its script has words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .folding import is_spaceless

_MEASURE = re.compile(r"[0-9] ?[^\W\d]+$")


def word_places(text: str, wanted: str) -> Iterator[int]:
    """Yield where `wanted` begins in a text as whole words; both are folded."""
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not _joins(text[max(0, start - 2) : start][::-1], wanted[0]) and not _joins(
            text[end : end + 2], wanted[-1]
        ):
            is_rate = text[end : end + 1] == "/" and text[end + 1 : end + 2].isalpha()
            if not (is_rate and _MEASURE.search(wanted)):  # 5 km/h is not 5 km
                yield start
        start = text.find(wanted, start + 1)


def _joins(beside: str, edge: str) -> bool:
    """Return whether characters go on with the word, or the number, that ends with `edge`."""
    first, second = beside[:1], beside[1:]
    if not first or not _is_of_word(edge):
        return False
    if edge.isdigit() and first in ".,:'/" and second.isdigit():
        return True
    if first == "'" and second in ("t", "T"):  # can, can't
        return True
    if first == "_":  # _emphasis_, or snake_case
        return second.isalnum()
    return _is_of_word(first) and not (is_spaceless(first) or is_spaceless(edge))


def _is_of_word(character: str) -> bool:
    is_mark = unicodedata.category(character).startswith("M")
    return is_mark or character.isalnum() or character == "_"
