"""A secret text that a command needs: from a hidden prompt, from a file or from standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

LIMIT = 128 * 1024
"""What one environment variable may hold."""


@dataclass(frozen=True, slots=True)
class GivenValue:
    """What is asked for, in the words of the errors."""

    noun: str
    option: str
    instead: str
    """What to do where it cannot be asked for."""


def read_value(what: GivenValue, file: Path | None) -> str:
    """Return the value, from a file or from standard input, without one newline at its end.

    A terminal is asked without showing what is typed. Says when a newline was removed; raises a
    usage error that has nothing of the value.
    """
    if file is not None:
        text = _decoded(_from_file(file, what), what)
    elif sys.stdin.isatty():
        return str(click.prompt(what.noun.capitalize(), hide_input=True, err=True))
    else:
        text = _decoded(sys.stdin.buffer.read(LIMIT + 1), what)
    value = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if not value:
        raise click.UsageError(f"the {what.noun} is empty: {what.instead}")
    if value != text:
        click.echo(f"one newline at the end of the {what.noun} was removed", err=True)
    return value


def _from_file(file: Path, what: GivenValue) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(LIMIT + 1)
    except OSError as error:
        # The name is not shown: it may be the value.
        raise click.UsageError(f"{what.option} names no file to read: {error.strerror}") from None


def _decoded(content: bytes, what: GivenValue) -> str:
    if len(content) > LIMIT:
        raise click.UsageError(f"the {what.noun} is longer than {LIMIT // 1024} kB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError(f"the {what.noun} is not UTF-8") from None
