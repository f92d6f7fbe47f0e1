"""Text from files, servers and other programs, made harmless for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with control and bidirectional characters and line breaks escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
