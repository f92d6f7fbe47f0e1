"""A TOML text with the lines of its keys: tomllib says what a file holds, not where.

`TomlSource` parses with tomllib and finds the line of each key by reading the text once more. Knows
nothing of what the keys mean.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 1024 * 1024
KeyPath = tuple[str, ...]
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_KEY_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' r"'''.*?'''|" r'"(?:[^"\\\n]|\\.)*"|' r"'[^'\n]*'|#[^\n]*", re.DOTALL
)


class TomlError(Exception):
    """A text that is not TOML: what is wrong, and on which line where that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class TomlSource:
    """What a TOML text holds, and the line of each key in it."""

    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(repr=False)
    """The line of a key or table by its path, from 1."""

    @classmethod
    def parse(cls, raw: bytes) -> TomlSource:
        """Parse the bytes of a file; raise TomlError for no TOML, no UTF-8, or too many of them."""
        text = _decoded(raw)
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _explained(str(error), text) from None
        except RecursionError:
            raise TomlError("its values are nested too deeply") from None
        except ValueError:
            raise TomlError("one of its numbers has more digits than can be read") from None
        lines: dict[KeyPath, int] = {}
        for path, line in _definitions(text):
            lines.setdefault(path, line)
        return cls(data, lines)

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest table around it that has one."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise TomlError(f"it has more than {MAX_BYTES:,} bytes")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TomlError("it is UTF-16; save it as UTF-8")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise TomlError("it starts with a byte order mark; save it as UTF-8 without one", 1)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TomlError(f"not UTF-8 (byte 0x{raw[error.start]:02x})", line) from None


def _explained(message: str, text: str) -> TomlError:
    """The parser's error with its line; a key that is there twice with both lines."""
    seen: dict[KeyPath, int] = {}
    for path, line in _definitions(text):
        if path in seen:
            name = ".".join(path)
            return TomlError(f"{name}: defined twice, on line {seen[path]} too", line)
        seen[path] = line
    place = _PLACE.search(message)
    rule = _PLACE.sub("", message)
    if place is None:
        return TomlError(f"not TOML: {rule}")
    if place[1] is None:
        return TomlError(f"not TOML: {rule}", text.rstrip("\n").count("\n") + 1)
    return TomlError(f"not TOML: {rule} (column {place[2]})", int(place[1]))


def _definitions(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Each table header and each key at the start of a statement, with its line.

    A text that is no TOML gives those before its mistake, and perhaps a few that are none.
    """
    table: KeyPath = ()
    for line, statement in _statements(text):
        if statement.startswith("["):
            is_array = statement.startswith("[[")
            table, _ = _key(statement.lstrip("["))
            if is_array:
                table = (*table, f"[{line}]")  # each is another
            yield table, line
        else:
            path, rest = _key(statement)
            if path and rest.startswith("="):
                yield table + path, line


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: a value may go over several lines of the file."""
    # Comments and the insides of strings become blanks, so that brackets can be counted.
    bare = _QUOTED.sub(_blanked, text)
    depth = 0
    for number, (line, plain) in enumerate(
        zip(text.split("\n"), bare.split("\n"), strict=True), start=1
    ):
        if depth <= 0 and plain.strip() and not plain.startswith("\0"):
            depth = 0
            yield number, line.strip()
            if plain.lstrip().startswith("["):
                continue
        depth += sum(map(plain.count, "[{")) - sum(map(plain.count, "]}"))


def _blanked(match: re.Match[str]) -> str:
    """Blanks of the same length; the later lines of a string are marked as no statement."""
    quoted = match[0]
    if quoted.startswith("#"):
        return " " * len(quoted)
    first, *later = quoted.split("\n")
    return "\n".join(["x" * len(first), *("\0" + "x" * len(part) for part in later)])


def _key(text: str) -> tuple[KeyPath, str]:
    """The dotted key at the start of a text, and what follows it."""
    parts: list[str] = []
    while match := _KEY_PART.match(text):
        parts.append(_unescaped(match[1]) if match[1] is not None else match[2] or match[3] or "")
        text = text[match.end() :]
        if not text.startswith("."):
            break
        text = text[1:]
    return tuple(parts), text


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return next(iter(tomllib.loads(f'"{text}" = 0')))
    except tomllib.TOMLDecodeError:  # the mistake of the whole text, told by its parser
        return text
