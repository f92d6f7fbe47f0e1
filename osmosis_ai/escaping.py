"""Text from files, servers and other programs, made harmless for terminals and readers of JSON."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """Return the text with control and bidirectional characters and line breaks escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape of JSON: a pair of halves, a half alone, or any other."""


def encodable_json(text: str) -> str:
    """Return JSON in ASCII, with U+FFFD for each half of a character."""
    if "\\ud" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
