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
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_KEY = re.compile(rf"\s*{_DOTTED}\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*{_DOTTED}\s*\]")
_TEXT_OF_LINES = re.compile(r'"""(?:[^\\]|\\.)*?"""|' r"'''.*?'''", re.DOTALL)


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
    """Each table header and each key at the start of a line, with that line.

    A text that is no TOML gives those before its mistake, and perhaps a few that are none.
    """
    # What stands within a text of several lines is no key.
    bare = _TEXT_OF_LINES.sub(lambda text: "\n" * text[0].count("\n"), text)
    table: KeyPath = ()
    for number, line in enumerate(bare.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = _path(header[2])
            if header[1] == "[[":
                table = (*table, f"[{number}]")  # each is another
            yield table, number
        elif key := _KEY.match(line):
            yield table + _path(key[1]), number


def _path(text: str) -> KeyPath:
    try:
        table: Any = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:  # the mistake of the whole text, told by its parser
        return (text,)
    path: KeyPath = ()
    while isinstance(table, dict):
        ((name, table),) = table.items()
        path = (*path, name)
    return path
