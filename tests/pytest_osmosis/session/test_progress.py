"""How far a session is: the words of the line, and that it never mixes with pytest's output."""

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
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

from pytest_osmosis.run_result import RunResult
from pytest_osmosis.session import progress
from pytest_osmosis.session.progress import LiveProgress, ProgressCounter, clock_time, short
from tests.support.endpoints import Ask, completion, reply
from tests.support.project import Project

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
        tally.ended(replace(RUN, passed=number % 10 != 0))
    assert tally.line() == "40/100  pass 90%  16 in flight  2.0k tok/s  $0.8000  eta 0:15"
    assert tally.line(40) == "40/100  pass 90%  16 in flight  eta 0:15"
    assert tally.line(20) == "40/100  eta 0:15"
    for _ in range(60):
        tally.ended(RUN)
    assert tally.line().startswith("100/100  pass 96%  0 in flight")
    assert "eta" not in tally.line()


def test_errors_are_counted_where_there_are_any():
    tally = ProgressCounter(lambda: 3, lambda left: left)
    tally.ended(replace(RUN, passed=False, error_type="provider", tokens=None, cost_usd=None))
    tally.ended(replace(RUN, tokens=None, cost_usd=None))
    assert tally.line().startswith("2/3  pass 100%  1 error  1 in flight")


def test_the_reason_stands_at_the_end_while_the_endpoint_fails():
    said: list[str] = []
    tally = ProgressCounter(
        lambda: 9, lambda left: 2, refusals=lambda: "".join(said), clock=Clock()
    )
    failed = replace(RUN, passed=False, tokens=None, cost_usd=None)
    unreachable = 'cannot reach http://localhost:8000 (connection refused, 3 tries). Is it "on"?'
    tally.ended(replace(failed, error_type="provider", error=unreachable))
    assert tally.line() == f"1/9  1 error  2 in flight  {unreachable}"
    assert tally.line(60) == "1/9  1 error  cannot reach http://localhost:8000 (connectio…"
    assert tally.line(20) == "1/9  cannot reach h…"
    tally.ended(replace(failed, cached=True))
    assert unreachable in tally.line()
    refused = replace(failed, error_type="agent", error_kind="bad_request")
    tally.ended(replace(refused, error="400\x1b[2J\nfurther words"))
    assert tally.line().endswith("  400\\x1b[2J")
    tally.ended(failed)
    assert tally.line(60) == "4/9  pass 0%  1 error  2 in flight"
    said.append("429 x 2: 当前分组上游负载已饱和")
    assert tally.line(20) == "4/9  429 x 2: 当前…"  # 19 columns


def test_runs_of_an_earlier_session_count_but_set_no_pace():
    clock = Clock()
    tally = ProgressCounter(lambda: 100, lambda left: 1, clock=clock)
    for _ in range(50):
        tally.ended(replace(RUN, cached=True, cost_usd=None))
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


class Reporter:
    """As much of pytest's terminal reporter and writer as the live line uses."""

    fullwidth = 40
    width_of_current_line = 0

    def __init__(self, file: TextIO) -> None:
        self.config = self
        self.file = file

    def get_terminal_writer(self) -> Reporter:
        return self

    def flush(self) -> None:
        self.file.flush()

    def write(self, text: str) -> None:
        self.file.write(text)
        self.width_of_current_line += len(text)


class Drawn:
    """A live line over a pipe in the place of standard output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read_end, here = os.pipe()
        os.set_blocking(self.read_end, False)
        self.file = open(here, "w", encoding="utf-8")  # noqa: SIM115
        monkeypatch.setattr(sys, "stdout", self.file)
        monkeypatch.setattr(progress, "REDRAW_S", 3600.0)
        self.counter = ProgressCounter(lambda: 40, lambda left: 1)
        self.reporter = Reporter(self.file)
        self.live = LiveProgress(self.counter, self.reporter)
        self.live.pytest_runtestloop()

    def written_by_pytest(self, text: str) -> None:
        """Have the reporter write in one of pytest's hooks."""
        hook = self.live.pytest_runtest_logreport()
        next(hook)
        self.reporter.write(text)
        with pytest.raises(StopIteration):
            hook.send(None)

    def seen(self) -> str:
        try:
            return os.read(self.read_end, 65_536).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        self.live.pytest_sessionfinish()
        self.file.close()
        os.close(self.read_end)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drawn]:
    """Closed in the end."""
    with monkeypatch.context() as patch, closing(Drawn(patch)) as drawn:
        yield drawn


def test_the_live_line_makes_way_for_what_pytest_writes_and_is_back_at_once(drawn: Drawn):
    drawn.written_by_pytest("....")
    drawn.live._draw("12/40  " + "x" * 80)
    drawn.written_by_pytest("F")
    line = "\x1bD\x1b[A\x1b7\x1bD\r\x1b[K" + ("12/40  " + "x" * 80)[:39] + "\x1b8"
    assert drawn.seen() == f"....{line}\x1b[JF{line}"
    drawn.live.pytest_sessionfinish()
    drawn.written_by_pytest("?")
    assert drawn.seen() == "\x1b[J?"


def test_nothing_is_drawn_while_the_cursor_is_past_the_margin(drawn: Drawn):
    drawn.written_by_pytest("." * 40)
    drawn.live._draw("line")
    assert drawn.seen() == "." * 40
    drawn.reporter.width_of_current_line = 0
    drawn.live._draw("line")
    assert "line" in drawn.seen()


def test_the_line_is_taken_away_when_xdist_is_about_to_write(drawn: Drawn):
    drawn.live._draw("line")
    drawn.live.pytest_testnodedown()
    assert drawn.seen().endswith("\x1b[J")


@pytest.mark.parametrize(
    ("variable", "value", "live"),
    [
        ("TERM", "xterm", True),
        ("TERM", "dumb", False),
        ("NO_COLOR", "1", False),
        ("CI", "1", False),
    ],
)
def test_a_live_line_needs_a_terminal_where_escapes_are_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, live: bool
):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(progress.compat, "is_own_terminal", lambda reporter: True)
    config: Any = SimpleNamespace(option=SimpleNamespace(capture="fd"), getini=lambda name: False)
    assert progress._can_live(config, SimpleNamespace(isatty=True)) is live


def test_a_standard_output_without_a_descriptor_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    live = LiveProgress(ProgressCounter(lambda: 1, lambda left: 1), Reporter(sys.stdout))
    live.pytest_runtestloop()
    live.pytest_sessionfinish()
    assert isinstance(sys.stdout, io.StringIO) and not sys.stdout.getvalue()


def on_terminal(
    project: Project, *args: str, columns: int = 80, until: Mapping[str, str] | None = None
) -> str:
    """All that a session writes to a terminal of its own.

    `until`: files that are made in the project once the terminal shows what matches a pattern.
    """
    awaited = dict(until or {})
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
        for name, pattern in tuple(awaited.items()):
            if re.search(pattern.encode(), seen):
                (project.path / name).touch()
                del awaited[name]
    os.waitpid(pid, 0)
    os.close(terminal)
    return seen.decode()


@pytest.fixture
def slow(project: Project) -> Project:
    """A project whose runs end once there is a file `seen`."""

    def answers(ask: Ask) -> Iterator[float | bytes]:
        while not (project.path / "seen").exists():
            yield 0.02
        yield reply(200, completion(ask.row, model=ask.model))

    project.endpoint.answers = answers
    project.rows("one", "two")
    return project


@pytest.mark.slow
def test_on_a_terminal_the_line_is_drawn_and_nothing_of_it_is_left(slow: Project):
    until = {"seen": r"\x1b\[K0/2  1 in flight"}
    seen = on_terminal(slow, *slow.options("-n0"), until=until)
    summary = seen[seen.index("osmosis summary") :]
    assert "\x1b7" not in summary
    assert seen.rindex("\x1b[J") > seen.rindex("\x1b[K")


@pytest.mark.slow
def test_none_is_in_flight_while_tests_run_ahead_of_the_first(slow: Project):
    slow.write(
        "test_ahead.py",
        "import pathlib, time\n\n"
        "def test_slow():\n"
        "    while not pathlib.Path('ahead').exists():\n"
        "        time.sleep(0.02)\n",
    )
    until = {"ahead": "0/2  0 in flight", "seen": "0/2  1 in flight"}
    seen = on_terminal(slow, *slow.options("-n0", "test_ahead.py", "data.jsonl"), until=until)
    assert re.findall(r"0/2  (\d) in flight", seen)[0] == "0"


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [["-s"], ["-qq"], ["--collect-only"]],
    ids=" ".join,
)
def test_no_live_line_where_others_write_or_nobody_wants_it(project: Project, how: list[str]):
    project.endpoint.latency_s = 0.5
    project.rows("one", "two")
    seen = on_terminal(project, *project.options("-n0", *how))
    assert "\x1b7" not in seen
    assert "in flight  " not in seen


@pytest.mark.slow
def test_without_a_terminal_a_line_is_written_now_and_then(project: Project):
    def answers(ask: Ask) -> Iterator[float | bytes]:
        while ask.row == "two" and not (project.path / "reported").exists():
            yield 0.02
        yield reply(200, completion(ask.row, model=ask.model))

    project.endpoint.answers = answers
    project.rows("one", "two")
    project.write(
        "conftest.py",
        "import pathlib\n\n"
        "import pytest\n"
        "from pytest_osmosis.session import progress\n\n"
        "progress.PLAIN_EVERY_S = 0.0\n\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_logfinish():\n"
        "    yield\n"
        "    pathlib.Path('reported').touch()\n",
    )
    session = project.apart(*project.options("-n0"))
    assert "1/2  pass 100%  1 in flight" in session.out
    assert "\x1b" not in session.out
    plain = [line for line in session.lines if "in flight  " in line and "osmosis" not in line]
    assert all(re.match(r"\d/2  ", line) for line in plain)
