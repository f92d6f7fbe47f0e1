"""What a command prints, held back until it is known whether the command succeeded.

With `--json` the success of a command is one document on stdout and its failure one document on
stderr, whatever else was printed on the way. This module knows neither click nor JSON.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TextIO


class HeldBytes(io.RawIOBase):
    """Keeps what is written to it until it is released; from then on passes it through."""

    def __init__(self, target: TextIO) -> None:
        super().__init__()
        self._target = target
        self._kept: list[bytes] | None = []

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Whether the stream behind is a terminal: colours and widths depend on it."""
        return self._target.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream behind."""
        return self._target.fileno()

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # any buffer in typeshed
        """Keep the bytes, or pass them on once released."""
        if self._kept is None:
            self._pass_on(bytes(data))
        else:
            self._kept.append(bytes(data))
        return len(data)

    def kept(self) -> str:
        """The text held so far."""
        return b"".join(self._kept or ()).decode("utf-8", "replace")

    def drop(self) -> None:
        """Forget what is held, and go on holding."""
        self._kept = []

    def release(self) -> None:
        """Write what is held to the stream behind, and hold nothing from now on."""
        kept, self._kept = self._kept, None
        if kept:
            self._pass_on(b"".join(kept))

    def _pass_on(self, data: bytes) -> None:
        self._target.write(data.decode("utf-8", "replace"))
        self._target.flush()


@dataclass(frozen=True, slots=True)
class Held:
    """The two standard streams while they are held."""

    out: HeldBytes
    err: HeldBytes


@contextmanager
def held_streams() -> Iterator[Held]:
    """Hold stdout and stderr back; the caller releases or drops what was written."""
    held = Held(HeldBytes(sys.stdout), HeldBytes(sys.stderr))
    with redirect_stdout(_text(held.out)), redirect_stderr(_text(held.err)):
        yield held


def _text(raw: HeldBytes) -> io.TextIOWrapper:
    # TextIOWrapper accepts a raw stream as long as it never reads; `buffer` is held as well.
    return io.TextIOWrapper(
        raw,  # type: ignore[arg-type]
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send stdout to stderr, also what is written to the descriptor behind Python's back."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def soften_encodings() -> None:
    """Print escapes instead of failing where the terminal's encoding lacks a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    """The text with control and bidirectional characters escaped, line breaks included."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
