"""Texts as they are compared: characters that say the same are one.

Typographic quotes, minus signs, spaces and digits differ by keyboard, script and model, accents by
how they are composed. What is left different may still look equal; `difference` names it then.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import zip_longest

_SPACES = "\u00a0\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_ONE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛‹›", "'"),
        **dict.fromkeys("“”„‟«»", '"'),
        **dict.fromkeys("−﹣－", "-"),
        **dict.fromkeys(_SPACES, " "),
    }
)
_DIGIT = re.compile(r"(?![0-9])\d")
_EN_DASH = re.compile(r"[‐‑‒–](?=[0-9.$€£¥])")
_SPACELESS = re.compile(
    "CJK|HIRAGANA|KATAKANA|HALFWIDTH|THAI|LAO|KHMER|MYANMAR|TIBETAN|HANGUL|BOPOMOFO|YI"
)


def fold(text: str) -> str:
    """Return the text with one character for all that say the same."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text).translate(_ONE)
    return _EN_DASH.sub("-", _DIGIT.sub(lambda digit: str(int(digit[0])), text))


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def is_spaceless(character: str) -> bool:
    """Return whether words of the character's script stand beside each other without spaces."""
    return not character.isascii() and bool(_SPACELESS.match(_script(character)))


def difference(given: str, wanted: str, *, shown: int) -> str:
    """Return what tells apart two folded texts that look equal where `shown` characters are."""
    pairs = zip_longest(given, wanted, fillvalue="")
    place, (one, other) = next(
        numbered for numbered in enumerate(pairs, 1) if numbered[1][0] != numbered[1][1]
    )
    if place < shown and not _look_equal(one, other) and _compatible(given) != _compatible(wanted):
        return ""
    return f" (character {place}: {_name(one)}, wanted {_name(other)})"


def _look_equal(one: str, other: str) -> bool:
    if "M" in (_kind(one), _kind(other)):
        return True
    if not one or not other or (one + other).isascii() or _kind(one) != _kind(other):
        return False
    return _kind(one) != "L" or _script(one) != _script(other)


def _kind(character: str) -> str:
    return unicodedata.category(character)[0] if character else ""


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _name(character: str) -> str:
    return unicodedata.name(character, repr(character)) if character else "none"
