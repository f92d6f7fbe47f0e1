"""Whether two texts are the same mathematics, by the package math-verify.

It takes seconds to import, may compute without end, and keeps its limits of time by signals, which
only a main thread gets: so it lives in a process of its own, which is asked by lines of JSON, and
replaced where it does not answer.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ..number_reading import answer_places

PROCESS = Path(__file__).with_name("process.py")
PACKAGE = "math_verify"
START_S = 120.0
"""Until it has imported the package, on a busy machine."""
ANSWER_S = 15.0
"""For one question; the process itself gives up after 10 s where it can."""


class MathUnavailable(RuntimeError):
    """The process cannot be started or does not answer; a sentence."""


def is_installed() -> bool:
    """Return whether math-verify can be imported."""
    return importlib.util.find_spec(PACKAGE) is not None


class _Process:
    """The process, started when it is first asked; one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None

    def ask(self, **question: Any) -> Any:
        """Return its answer; None where it gave none in time."""
        with self._lock:
            process = self._running
            if process is None or process.poll() is not None:
                process = self._running = self._started()
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                line = self._line(process, ANSWER_S)
            except OSError:
                line = b""
            if not line:
                self._end(process)
                return None
            return json.loads(line)

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", str(PROCESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self._end, process)
        if self._line(process, START_S) != b"ready\n":
            self._end(process)
            raise MathUnavailable("the process of math-verify does not start; can it be imported?")
        return process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        """Return the next line; empty where none came in time."""
        assert process.stdout is not None
        line, deadline = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([process.stdout], [], [], left)[0]:
                return b""
            piece = process.stdout.raw.read(1 << 16)  # type: ignore[attr-defined]
            if not piece:
                return b""
            line += piece
        return line

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # a question that it did not take
                    pipe.close()
        process.wait()


_process = _Process()

_WORDS = re.compile(r"\\(?:text|mathrm|mbox|operatorname|begin|end)\s?\{[^{}]*\}|\\[A-Za-z]+")
_PLAIN = (
    (
        re.compile(r"(?<![\w.,^/])([0-9]{1,3}) ([0-9]{1,3})/([0-9]{1,3})(?![\w/])"),
        r"\1\\frac{\2}{\3}",
    ),
    (re.compile(r"\bsqrt\s?\(([^()]*)\)|√\s?\(([^()]*)\)"), r"\\sqrt{\1\2}"),
    (re.compile(r"√\s?(\w+)"), r"\\sqrt{\1}"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*|×|·"), r"\\cdot "),
    (re.compile(r"π|(?<![\\A-Za-z])pi\b"), r"\\pi "),
    (re.compile(r"∞|(?<![\\A-Za-z])infinity\b"), r"\\infty "),
    (re.compile(r"<=|≤"), r"\\le "),
    (re.compile(r">=|≥"), r"\\ge "),
    (re.compile(r"∪"), r"\\cup "),
    (re.compile(r"\s+(?:or|and)\s+"), ", "),
)


def as_latex(text: str) -> str | None:
    """Return a text that is mathematics and nothing else as LaTeX; None where it has words."""
    text = text.strip().strip(".").strip()
    for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
        if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening) - 1:
            text = text[len(opening) : -len(closing)].strip()
    text = text.replace("$", "")
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    if re.search(r"[A-Za-z]{3}", _WORDS.sub(" ", text)) or not re.search(r"[\w\\]", text):
        return None
    return text


def answer_in_latex(answer: str) -> str | None:
    """Return the mathematics in the place of an answer that decides; None where it has none."""
    for place in answer_places(answer):
        inner = re.findall(r"\$\$?([^$]+)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]", place, re.DOTALL)
        if inner:
            return as_latex(next(filter(None, inner[-1])))
        if (latex := as_latex(place)) is not None:
            return latex
    return None


def is_readable(truth: str) -> bool:
    """Return whether a ground truth, as LaTeX, is mathematics that can be compared."""
    return bool(_process.ask(truth=truth))


def are_equal(answer: str, truth: str) -> bool | None:
    """Return whether two LaTeX texts are equal; None where that was not found in time."""
    found = _process.ask(truth=truth, answer=answer)
    return found if isinstance(found, bool) else None
