"""What `-k` selects, by names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .. import compat


def matches(words: str, names: Iterable[str]) -> bool:
    """Return whether an item that stands below these names, its own among them, is selected."""
    lower = [name.lower() for name in names]
    return compat.evaluate(words, lambda word: any(word.lower() in name for name in lower))


def has_unknown_word(words: str, known: Iterable[Iterable[str]]) -> bool:
    """Return whether a word is in none of the names that are known."""
    names = " ".join(name.lower() for each in known for name in each)
    said = set(re.findall(r"[^\s()]+", words.lower())) - {"and", "or", "not"}
    return any(word not in names for word in said)
