"""How far a session is: the line's words, and that it never mixes with what pytest writes."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pytest_osmosis.results import RunResult
from pytest_osmosis.session.progress import ProgressCounter, Screen, clock_time, short
from tests.project import Project

RUN = RunResult("s", 0, 0, passed=True, tokens=500, cost_usd=0.02)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_line_tells_done_pass_rate_flight_rates_cost_and_time_left():
    clock = Clock()
    tally = ProgressCounter(lambda: 100, lambda left: min(16, left), clock=clock)
    assert tally.line() == "0/100  16 in flight"
    for number in range(40):
        clock.now += 0.25
        tally.ended(RUN._replace(passed=number % 10 != 0))
    assert tally.line() == "40/100  pass 90%  16 in flight  2.0k tok/s  $0.80  eta 0:15"
    for _ in range(60):
        tally.ended(RUN)
    assert tally.line().startswith("100/100  pass 96%  0 in flight")
    assert "eta" not in tally.line()


def test_runs_of_an_earlier_session_count_but_set_no_pace():
    clock = Clock()
    tally = ProgressCounter(lambda: 100, lambda left: 1, clock=clock)
    for _ in range(50):
        tally.ended(RUN._replace(cached=True, cost_usd=None))
    clock.now += 10
    assert tally.line() == "50/100  pass 100%  1 in flight"
    tally.ended(RUN)
    assert "eta 8:10" in tally.line()


def test_rates_forget_what_is_long_past():
    clock = Clock()
    tally = ProgressCounter(lambda: 10, lambda left: 1, clock=clock)
    tally.ended(RUN)
    clock.now += 60
    assert "tok/s" not in tally.line()


def test_numbers_and_times_are_short():
    assert [short(n) for n in (0.4, 950, 2_100, 31_400, 1.25e6, 3e10)] == [
        "0", "950", "2.1k", "31k", "1.2M", "30.0G",
    ]  # fmt: skip
    assert [clock_time(s) for s in (9, 760, 11_100)] == ["0:09", "12:40", "3:05:00"]


class Writer:
    """As much of pytest's terminal writer as a screen looks at, over a pipe."""

    def __init__(self) -> None:
        self._file: Any
        self._there, here = os.pipe()
        os.set_blocking(self._there, False)
        self._file = open(here, "w", encoding="utf-8")  # noqa: SIM115
        self.fullwidth = 40
        self._current_line = ""

    @property
    def width_of_current_line(self) -> int:
        return len(self._current_line)

    def write(self, text: str) -> None:
        self._file.write(text)

    def seen(self) -> str:
        return os.read(self._there, 65_536).decode()

    def close(self) -> None:
        self._file.close()
        os.close(self._there)


@pytest.fixture
def writer() -> Iterator[Writer]:
    """Closed in the end."""
    with closing(Writer()) as writer:
        yield writer


def test_a_live_line_makes_way_for_what_is_written(writer: Writer):
    screen = Screen(writer)
    writer.write("....")
    screen.draw("12/40  " + "x" * 80)
    writer.write("F")
    screen.close()
    drawn = "\x1bD\x1b[A\x1b7\x1bD\r\x1b[K" + ("12/40  " + "x" * 80)[:39] + "\x1b8"
    assert writer.seen() == f"....{drawn}\x1b[JF{drawn}\x1b[J"
    writer.write("after")
    writer._file.flush()
    assert writer.seen() == "after"


def test_nothing_is_drawn_while_the_cursor_is_past_the_margin(writer: Writer):
    screen = Screen(writer)
    writer.write("\x1b[32m" + "." * 40 + "\x1b[0m")
    writer.seen()
    screen.draw("line")
    with pytest.raises(BlockingIOError):
        writer.seen()
    writer.write("\n")
    screen.draw("line")
    assert "line" in writer.seen()
    screen.close()


def test_a_line_that_stays_begins_and_ends_a_line(writer: Writer):
    screen = Screen(writer)
    writer.write("...")
    writer._current_line = "..."
    screen.say("3/9")
    screen.say("4/9")
    screen.close()
    assert writer.seen() == "...\n3/9\n4/9\n"
    assert writer._current_line == ""


def test_a_file_that_is_none_of_the_systems_is_left_alone():
    class Captured:
        _file = io.StringIO()
        width_of_current_line = 0

    with pytest.raises(OSError):
        Screen(Captured())
    assert isinstance(Captured._file, io.StringIO)


def on_terminal(project: Project, *args: str, columns: int = 80) -> str:
    """All that a session writes to a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project.path)
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen = b""
    while True:
        select.select([terminal], [], [])
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not data:
            break
        seen += data
    os.waitpid(pid, 0)
    os.close(terminal)
    return seen.decode()


@pytest.fixture
def slow(project: Project) -> Project:
    """A project whose runs take half a second."""
    project.endpoint.latency_s = 0.5
    project.rows("one", "two")
    return project


def test_on_a_terminal_the_line_is_drawn_and_nothing_of_it_is_left(slow: Project):
    seen = on_terminal(slow, *slow.options("-n0"))
    assert re.search(r"\x1b\[K[01]/2 .* 1 in flight", seen)
    summary = seen[seen.index("osmosis summary") :]
    assert "\x1b7" not in summary
    assert seen.rindex("\x1b[J") > seen.rindex("\x1b[K")


@pytest.mark.parametrize("how", [["-s"], ["-qq"], ["--collect-only"]], ids=" ".join)
def test_no_live_line_where_others_write_or_nobody_wants_it(slow: Project, how: list[str]):
    seen = on_terminal(slow, *slow.options("-n0", *how))
    assert "\x1b7" not in seen
    assert "in flight  " not in seen


def test_without_a_terminal_a_line_is_written_now_and_then(slow: Project):
    slow.write(
        "conftest.py",
        "from pytest_osmosis.session import progress\nprogress.PLAIN_EVERY_S = 0.3\n",
    )
    session = slow.apart(*slow.options("-n0"))
    assert "1/2  pass 100%  1 in flight" in session.out
    assert "\x1b" not in session.out
    plain = [line for line in session.lines if "in flight  " in line and "osmosis" not in line]
    assert all(re.match(r"\d/2  ", line) for line in plain)


def test_what_is_written_is_gathered_until_it_is_settled(writer: Writer):
    screen = Screen(writer, gather_s=3600.0)
    writer.write(".")  # the first goes at once
    assert writer.seen() == "."
    for letter in "..F":
        writer.write(letter)
        writer._file.flush()
    with pytest.raises(BlockingIOError):
        writer.seen()
    screen.settle()
    assert writer.seen() == "..F"
    writer.write("E")
    screen.close()
    assert writer.seen() == "E"
