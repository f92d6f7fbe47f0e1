"""How far a session is, while it runs: one live line on a terminal, else a plain line now and then.

`ProgressCounter` counts. `LiveProgress` draws its line below the one that pytest writes to, and
takes it away before pytest writes. `PlainProgress` writes it with pytest's terminal reporter. Knows
nothing of rollouts.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pytest

from .. import compat
from ..escaping import counted, dollars, escape_control_chars
from ..run_result import RunResult

REDRAW_S = 0.2
"""How often the live line is redrawn, at most."""
ASIDE_S = 1.0
"""How long the live line stays away when xdist is about to write a line."""
PLAIN_EVERY_S = 30.0
"""How often a plain line is written, at most."""
RATE_S = 30.0
"""The time over which rates are taken."""
TOGETHER_S = 0.1
"""Runs that end within this time are counted as one moment's."""
REASON = 40
"""Characters of the reason for which other parts make way, where it has as many."""
_ERASE_BELOW = b"\x1b[J"


@dataclass(slots=True)
class _Moment:
    """Runs that ended at about the same time."""

    at: float
    runs: int = 0
    tokens: int = 0


class ProgressCounter:
    """Counts the runs that have ended, from any thread."""

    def __init__(
        self,
        total: Callable[[], int],
        in_flight: Callable[[int], int],
        *,
        refusals: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`in_flight` takes the number of runs that have not ended.

        `refusals` returns what calls are refused with; "" once one was answered.
        """
        self._refusals = refusals
        self._total = total
        self._in_flight = in_flight
        self._clock = clock
        self._started = clock()
        self._recent: deque[_Moment] = deque()
        """When runs ended over the last `RATE_S`."""
        self._lock = threading.Lock()
        self.done = 0
        self._passed = 0
        self._scored = 0
        self._cost_usd: float | None = None
        self._error = ""
        """Of the endpoint, which the last run ended in."""

    def ended(self, run: RunResult) -> None:
        """Count a run; one of an earlier session takes no part in the rates."""
        with self._lock:
            self.done += 1
            self._passed += run.passed
            self._scored += run.outcome not in ("error", "not run")
            if run.cost_usd is not None:
                self._cost_usd = (self._cost_usd or 0.0) + run.cost_usd
            if run.cached:
                return
            is_endpoints = run.error_type == "provider" or run.error_kind == "bad_request"
            self._error = (run.error or "") if is_endpoints else ""
            now = self._clock()
            if not self._recent or self._recent[-1].at < now - TOGETHER_S:
                self._recent.append(_Moment(now))
            self._recent[-1].runs += 1
            self._recent[-1].tokens += run.tokens or 0

    def line(self, width: int | None = None) -> str:
        """Return how far the session is, in one line; empty before runs are selected.

        What is worth least goes first where the line is longer than `width`. While the endpoint
        fails, the line ends with the reason.
        """
        with self._lock:
            parts = self._parts() if self._total() else {}
            reason = (self._refusals() or self._error) if parts else ""
        reason = escape_control_chars(reason.partition("\n")[0])
        room = min(len(reason), REASON) + 2 if reason else 0
        for name in ("tokens", "cost", "flight", "errors", "pass", "eta"):
            if width is None or len("  ".join(parts.values())) + room <= width:
                break
            parts.pop(name, None)
        line = "  ".join(parts.values())
        if not reason:
            return line
        return f"{line}  {reason if width is None else fitting(reason, width - len(line) - 2)}"

    def _parts(self) -> dict[str, str]:
        total = max(self._total(), self.done)
        parts = {"done": f"{self.done}/{total}"}
        if self._scored:
            parts["pass"] = f"pass {100 * self._passed // self._scored}%"
        if errors := self.done - self._scored:
            parts["errors"] = counted(errors, "error")
        parts["flight"] = f"{self._in_flight(total - self.done)} in flight"
        rate, tokens = self._rates()
        if tokens:
            parts["tokens"] = f"{short(tokens)} tok/s"
        if self._cost_usd:
            parts["cost"] = dollars(self._cost_usd)
        if rate and total > self.done:
            parts["eta"] = f"eta {clock_time((total - self.done) / rate)}"
        return parts

    def _rates(self) -> tuple[float, float]:
        """Return runs and tokens a second over the last `RATE_S`."""
        now = self._clock()
        while self._recent and self._recent[0].at < now - RATE_S:
            self._recent.popleft()
        span = min(RATE_S, now - self._started)
        if not self._recent or span <= 0:
            return 0.0, 0.0
        runs = sum(moment.runs for moment in self._recent)
        return runs / span, sum(moment.tokens for moment in self._recent) / span


def fitting(text: str, columns: int) -> str:
    """Return a text in so many columns of a terminal; what is left out is "…"."""
    from unicodedata import east_asian_width

    ends = list(accumulate(1 + (east_asian_width(char) in "WF") for char in text))
    if not ends or ends[-1] <= columns:
        return text
    return f"{text[: bisect_left(ends, columns)]}…"


def short(number: float) -> str:
    """Format a number in a few characters: 950, 2.1k, 31k, 1.2M."""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M")):
        if number < limit:
            scaled = number / (limit / 1e3)
            return f"{scaled:.1f}{unit}" if unit and scaled < 10 else f"{scaled:.0f}{unit}"
    return f"{number / 1e9:.1f}G"


def clock_time(seconds: float) -> str:
    """Format a duration: 0:09, 12:40, 3:05:00."""
    whole = int(seconds + 0.5)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def show(config: pytest.Config, counter: ProgressCounter) -> None:
    """Register the plugin that shows the counter in this session, if any does."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or config.get_verbosity() < -1:
        return
    kind = LiveProgress if _can_live(config, reporter) else PlainProgress
    config.pluginmanager.register(kind(counter, reporter), "osmosis-progress")


class PlainProgress:
    """Writes a line of its own now and then, when an item has been reported."""

    def __init__(self, counter: ProgressCounter, reporter: Any) -> None:
        self._counter = counter
        self._reporter = reporter
        self._shown = 0
        self._due = time.monotonic() + PLAIN_EVERY_S

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """Write the line if it is due and a run has ended since the last one."""
        now = time.monotonic()
        if now < self._due or self._counter.done == self._shown:
            return
        self._due, self._shown = now + PLAIN_EVERY_S, self._counter.done
        self._reporter.ensure_newline()
        writer = self._reporter.config.get_terminal_writer()
        if writer.width_of_current_line:
            writer.line()
        self._reporter.write_line(self._counter.line())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write nothing between the reports of gates."""
        self._due = float("inf")


class LiveProgress:
    """Draws a line below the current one, from a thread and through a descriptor of its own.

    The descriptor goes to the terminal also while pytest captures the standard ones. The terminal's
    cursor stays where pytest's output ends.
    """

    def __init__(self, counter: ProgressCounter, reporter: Any) -> None:
        self._counter = counter
        self._reporter = reporter
        self._writer = reporter.config.get_terminal_writer()
        self._descriptor: int | None = None
        self._drawn = False
        self._line = ""
        """The last line that was drawn."""
        self._aside_until = 0.0
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="osmosis-progress", daemon=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start to draw: pytest captures nothing at this moment."""
        try:
            self._descriptor = os.dup(sys.stdout.fileno())
        except (OSError, ValueError):
            return  # standard output is no file of the operating system
        self._thread.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Take the line away while pytest writes: it is back at once, or it would flicker."""
        with self._hidden():
            return (yield)

    pytest_runtest_logreport = pytest_runtest_logfinish = pytest_runtest_logstart

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        """Take the line away: the reporting process writes about the workers next."""
        with self._lock:
            self._erase()
            self._aside_until = time.monotonic() + ASIDE_S

    pytest_xdist_node_collection_finished = pytest_testnodedown

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Take the line away for good."""
        self._stopped.set()
        if self._descriptor is None:
            return
        self._thread.join()
        self._erase()
        os.close(self._descriptor)
        self._descriptor = None

    @contextmanager
    def _hidden(self) -> Iterator[None]:
        with self._lock:
            was_drawn = self._drawn
            self._erase()
            try:
                yield
            finally:
                self._reporter.flush()  # the line goes another way to the same terminal
                if was_drawn and not self._stopped.is_set():
                    self._try_to_draw(self._line)

    def _redraw(self) -> None:
        while not self._stopped.wait(REDRAW_S):
            with self._lock:
                if time.monotonic() < self._aside_until:
                    continue
                if not self._try_to_draw(self._counter.line(self._width - 1)):
                    return

    @property
    def _width(self) -> int:
        return max(20, int(self._writer.fullwidth))

    def _try_to_draw(self, line: str) -> bool:
        """Draw the line; return False where the terminal is gone."""
        try:
            self._draw(line)
        except OSError:
            return False
        return True

    def _draw(self, line: str) -> None:
        width = self._width
        column = int(self._writer.width_of_current_line)
        self._line = line
        if not line or (column and column % width == 0):
            return  # past the margin the cursor could not be put back
        # Save the cursor once there is room below it: a line down (scrolls), and up again.
        self._send(f"\x1bD\x1b[A\x1b7\x1bD\r\x1b[K{line[: width - 1]}\x1b8".encode())
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = False
            try:
                self._send(_ERASE_BELOW)
            except OSError:
                return  # the terminal is gone, and the line with it

    def _send(self, data: bytes) -> None:
        while data and self._descriptor is not None:
            data = data[os.write(self._descriptor, data) :]


def _can_live(config: pytest.Config, reporter: Any) -> bool:
    """Return whether a line can be drawn and taken away: a terminal that only pytest writes to."""
    plain = any(os.environ.get(name) for name in ("NO_COLOR", "CI"))
    if not reporter.isatty or plain or os.environ.get("TERM", "dumb") == "dumb":
        return False
    option = config.option
    captured = getattr(option, "capture", "no") != "no"
    others = not captured or getattr(option, "usepdb", False) or getattr(option, "trace", False)
    logs = config.getini("log_cli") or getattr(option, "log_cli_level", None) is not None
    return not (others or logs) and compat.is_own_terminal(reporter)
