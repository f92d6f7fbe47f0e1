"""Plain English: words that a reader stumbles over stay out of code, messages and pages."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AVOIDED = (
    r"whoever|nobody",
    r"(is|are|be|was|were) told",
    r"mend(s|ed|ing)?",
    r"bears?|heeds?|heeded",
    r"hush(es|ed)?",
    r"let go of|lets go|of its own accord",
    r"for ever",
    r"no news|none of our",
)
WORDS = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)
FSTRING_MIDDLE = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
"""From Python 3.12 on the text of an f-string is a token of its own."""

PLACES = (
    "osmosis_ai",
    "osmosis_cli",
    "osmosis_executors",
    "osmosis_platform",
    "pytest_osmosis",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
)


def pages(place: str) -> list[Path]:
    path = ROOT / place
    found = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
    return [page for page in sorted(found) if "_build" not in page.parts]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that people read: of Python, comments and strings; code in backticks stays out."""
    text = path.read_text(encoding="utf-8")
    if not WORDS.search(text):
        return  # to look for the lines takes much longer
    if path.suffix == ".md":
        lines: Iterable[tuple[int, str]] = enumerate(text.splitlines(), start=1)
    else:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        lines = (
            (token.start[0] + below, line)
            for token in tokens
            if token.type in (tokenize.COMMENT, tokenize.STRING, FSTRING_MIDDLE)
            and not token.string.strip("\"'").isidentifier()
            for below, line in enumerate(token.string.splitlines())
        )
    for number, line in lines:
        yield number, re.sub(r"`[^`]*`", "", line)


@pytest.mark.parametrize("place", PLACES)
def test_pages_are_written_in_plain_words(place: str):
    read = pages(place)
    assert read
    assert [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in read
        for number, line in prose(path)
        if WORDS.search(line)
    ] == []
