"""How far a session is, while it runs: one live line on a terminal, else a plain line now and then.

The live line stands below the line that pytest writes to. It is erased before anything is written
and drawn again by a thread of its own, by way of the terminal's own cursor: pytest and xdist need
not know of it. `ProgressCounter` counts, `Screen` writes, `Progress` follows the session. Nothing
here knows what a rollout is.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import pytest

from ..results import RunResult

REDRAW_S = 0.2
"""How often the live line is drawn anew, at most."""
GATHER_S = 0.1
"""How long what pytest writes may wait to be written together: a write for every dot lets two
threads take turns at the interpreter, which costs more than the item that the dot stands for."""
PLAIN_EVERY_S = 30.0
"""How often a plain line is written, at most."""
RATE_S = 30.0
"""The time over which rates are taken."""
TOGETHER_S = 0.1
"""Runs that ended within it are counted as one moment's."""
_ERASE = "\x1b[J"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78DM]")


@dataclass(slots=True)
class _Moment:
    """Runs that ended at about the same time."""

    at: float
    runs: int = 0
    tokens: int = 0


class ProgressCounter:
    """What has ended so far. From any thread."""

    def __init__(
        self,
        total: Callable[[], int],
        in_flight: Callable[[int], int],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`in_flight` is given the runs that have not ended."""
        self._total = total
        self._in_flight = in_flight
        self._clock = clock
        self._started = clock()
        self._recent: deque[_Moment] = deque()
        """When runs ended over the last `RATE_S`."""
        self._lock = threading.Lock()
        self.done = 0
        self._passed = 0
        self._cost_usd: float | None = None

    def ended(self, run: RunResult) -> None:
        """A run has ended; one of an earlier session takes no part in the rates."""
        with self._lock:
            self.done += 1
            self._passed += run.passed
            if run.cost_usd is not None:
                self._cost_usd = (self._cost_usd or 0.0) + run.cost_usd
            if not run.cached:
                self._note(run.tokens or 0)

    def _note(self, tokens: int) -> None:
        now = self._clock()
        if not self._recent or self._recent[-1].at < now - TOGETHER_S:
            self._recent.append(_Moment(now))
        self._recent[-1].runs += 1
        self._recent[-1].tokens += tokens

    def line(self) -> str:
        """Where things stand, for people."""
        with self._lock:
            return "  ".join(self._parts())

    def _parts(self) -> list[str]:
        total = max(self._total(), self.done)
        parts = [f"{self.done}/{total}"]
        if self.done:
            parts.append(f"pass {100 * self._passed // self.done}%")
        parts.append(f"{self._in_flight(total - self.done)} in flight")
        rate, tokens = self._rates()
        if tokens:
            parts.append(f"{short(tokens)} tok/s")
        if self._cost_usd:
            parts.append(f"${self._cost_usd:.2f}")
        if rate and total > self.done:
            parts.append(f"eta {clock_time((total - self.done) / rate)}")
        return parts

    def _rates(self) -> tuple[float, float]:
        """Runs and tokens a second, lately."""
        now = self._clock()
        while self._recent and self._recent[0].at < now - RATE_S:
            self._recent.popleft()
        span = min(RATE_S, now - self._started)
        if not self._recent or span <= 0:
            return 0.0, 0.0
        runs = sum(moment.runs for moment in self._recent)
        return runs / span, sum(moment.tokens for moment in self._recent) / span


def short(number: float) -> str:
    """A number in a few characters: 950, 2.1k, 31k, 1.2M."""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M")):
        if number < limit:
            scaled = number / (limit / 1e3)
            return f"{scaled:.1f}{unit}" if unit and scaled < 10 else f"{scaled:.0f}{unit}"
    return f"{number / 1e9:.1f}G"


def clock_time(seconds: float) -> str:
    """0:09, 12:40, 3:05:00."""
    whole = int(seconds + 0.5)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Screen:
    """Takes the place of a terminal writer's file, and adds lines of its own to what it writes.

    Its own descriptor goes to the terminal even while pytest captures the standard ones.
    """

    def __init__(self, writer: Any, *, gather_s: float = 0.0) -> None:
        """`writer` is pytest's terminal writer; `settle` is called every `gather_s` at least.

        Raises:
            OSError: when its file is none of the operating system's.
        """
        self._writer = writer
        self._gather_s = gather_s
        self._waiting: list[str] = []
        """What was written and has not gone to the file."""
        self._settled = -math.inf
        self._file: TextIO = writer._file
        self._file.flush()
        self._descriptor = os.dup(self._file.fileno())
        self._lock = threading.RLock()
        self._line = ""
        """The live line, while it stands there."""
        self._column = int(writer.width_of_current_line)
        writer._file = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write; the live line makes way for it."""
        with self._lock:
            self._waiting.append(text)
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Hand over what waits, unless that was done a moment ago."""
        if time.monotonic() - self._settled >= self._gather_s:
            self.settle()

    def settle(self) -> None:
        """Hand over what waits."""
        with self._lock:
            if not self._waiting:
                return
            text = "".join(self._waiting)
            self._waiting.clear()
            self._settled = time.monotonic()
            line = self._erase()
            self._file.write(text)
            self._file.flush()  # what is drawn goes another way to the same terminal
            self._follow(text)
            if line:
                self.draw(line)

    def draw(self, line: str) -> None:
        """Show a line below the one that is being written."""
        with self._lock:
            self.settle()
            width = max(20, int(self._writer.fullwidth))
            if self._column and self._column % width == 0:
                return  # the cursor is past the margin: it could not be put back there
            # the cursor is saved once there is room below it: a line down (scrolls), and up again
            self._send(f"\x1bD\x1b[A\x1b7\x1bD\r\x1b[K{line[: width - 1]}\x1b8")
            self._line = line

    def say(self, line: str) -> None:
        """Write a line that stays, between two of what else is written."""
        with self._lock:
            self.settle()
            self._send(f"\n{line}\n" if self._column else f"{line}\n")
            self._column = 0
            self._writer._current_line = ""  # else the next percentage stands in mid-line

    def close(self) -> None:
        """Leave nothing behind; what is written goes straight to the file again."""
        with self._lock:
            self.settle()
            self._erase()
            self._writer._file = self._file
            os.close(self._descriptor)

    def _erase(self) -> str:
        line, self._line = self._line, ""
        if line:
            self._send(_ERASE)
        return line

    def _send(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _follow(self, text: str) -> None:
        """Note the column that the cursor is in."""
        last = re.split(r"[\r\n]", _CONTROL.sub("", text))
        self._column = len(last[-1]) + (self._column if len(last) == 1 else 0)


class Progress:
    """Shows a tally on a screen for as long as runs are being run: a plugin of the session's."""

    def __init__(self, tally: ProgressCounter) -> None:
        self.tally = tally
        self._screen: Screen | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Items are about to run."""
        config = session.config
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or config.option.collectonly or config.get_verbosity() < -1:
            return
        # Where others write to the same place, all is written in its turn.
        alone = config.option.capture != "no" and not config.option.usepdb
        try:
            self._screen = Screen(reporter._tw, gather_s=GATHER_S if alone else 0.0)
        except (OSError, AttributeError):  # no file of the system's, or no writer of pytest's
            return
        show = self._live if _can_live(config, reporter) else self._plain
        self._thread = threading.Thread(target=show, name="osmosis-progress", daemon=True)
        self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """No further run ends."""
        self.close()

    def close(self) -> None:
        """Take the line away; harmless when repeated."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        if self._screen is not None:
            self._screen.close()
            self._screen = None

    def _live(self) -> None:
        assert self._screen is not None
        while not self._stopped.wait(REDRAW_S):
            try:
                self._screen.draw(self.tally.line())
            except OSError:
                return  # the terminal is gone

    def _plain(self) -> None:
        """A line when something has ended since the last one."""
        assert self._screen is not None
        told, due = 0, time.monotonic() + PLAIN_EVERY_S
        while not self._stopped.wait(GATHER_S):
            try:
                self._screen.settle()
                if time.monotonic() >= due and self.tally.done != told:
                    told = self.tally.done
                    self._screen.say(self.tally.line())
            except OSError:
                return  # nobody reads any more
            if time.monotonic() >= due:
                due += PLAIN_EVERY_S


def _can_live(config: pytest.Config, reporter: Any) -> bool:
    """Whether a line can be drawn and taken away: a terminal that nobody else writes to."""
    if not reporter.isatty or os.environ.get("CI") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    option = config.option
    others = option.capture == "no" or option.usepdb or getattr(option, "trace", False)
    return not others and type(reporter).__module__.startswith("_pytest.")
