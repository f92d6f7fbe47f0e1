"""The output of a command, buffered until it is known whether the command succeeded.

With `--json` success is one document on stdout and failure one document on stderr, whatever else
the command printed. Knows neither click nor JSON.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TextIO


class BufferedStream(io.RawIOBase):
    """Buffer what is written until `release`, and pass later writes through."""

    def __init__(self, target: TextIO) -> None:
        super().__init__()
        self._target = target
        self._kept: list[bytes] | None = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal: colours and widths depend on it."""
        return self._target.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the underlying stream."""
        return self._target.fileno()

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # any buffer in typeshed
        """Buffer the bytes, or write them through after `release`."""
        if self._kept is None:
            self._pass_on(bytes(data))
        else:
            self._kept.append(bytes(data))
        return len(data)

    def peek(self) -> str:
        """Return the text buffered so far."""
        return b"".join(self._kept or ()).decode("utf-8", "replace")

    def drop(self) -> None:
        """Discard what is buffered, and keep buffering."""
        self._kept = []

    def release(self) -> None:
        """Write what is buffered to the underlying stream, and stop buffering."""
        kept, self._kept = self._kept, None
        if kept:
            self._pass_on(b"".join(kept))

    def _pass_on(self, data: bytes) -> None:
        self._target.write(data.decode("utf-8", "replace"))
        self._target.flush()


@dataclass(frozen=True, slots=True)
class BufferedStreams:
    """The two standard streams while they are buffered."""

    out: BufferedStream
    err: BufferedStream

    def release(self) -> None:
        """Write what both have buffered, and stop buffering."""
        self.out.release()
        self.err.release()


@contextmanager
def buffered_streams() -> Iterator[BufferedStreams]:
    """Buffer stdout and stderr; the caller releases or drops what was written."""
    streams = BufferedStreams(BufferedStream(sys.stdout), BufferedStream(sys.stderr))
    with redirect_stdout(_text(streams.out)), redirect_stderr(_text(streams.err)):
        yield streams


def _text(raw: BufferedStream) -> io.TextIOWrapper:
    # TextIOWrapper accepts a raw stream as long as it never reads; `buffer` is buffered, too.
    return io.TextIOWrapper(
        raw,  # type: ignore[arg-type]
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send stdout to stderr, also what is written directly to the descriptor."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def open_closed_streams() -> None:
    """Open the null device where a standard stream is closed, as with `>&-`.

    The next file that is opened would have its number, and what is printed would be written to it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  open until the end


def soften_encodings() -> None:
    """Print escapes instead of failing where the terminal's encoding lacks a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
