"""The thread that watches an event loop for user code that blocks it.

A synchronous client inside `async def` delays every rollout of the process. The watchdog samples
the stack of the loop's thread: a section of user code that waits at one line in two runs, or holds
the loop for long, is reported. One that holds the loop when its time is up is interrupted where it
is. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

from .loop_thread import frame_of, raise_in_thread
from .main_loop import INTERRUPT_RETRY_S
from .section import Section, excuse

if TYPE_CHECKING:
    from .guards import Guards

POLL_INTERVAL_S = 0.05
"""How often the watchdog samples the stack."""
BLOCKED_S = 0.05
"""A wait of this length in the loop's thread counts as blocking."""
LONG_BLOCK_S = 5.0
"""Code that holds the loop for so long is reported, whether it waits or computes."""
MIN_BLOCKED_RUNS = 2
"""Shorter waits are reported after this many runs: a single slow import does not count."""
MIN_HELD_S = 1.0
"""Code that holds the loop for so long may be interrupted, and uses up no other code's time."""
MAX_INTERRUPTIONS = 5
"""After this many the loop is given up: code that waits outside of Python ignores them."""

_EXCUSED = ("<frozen importlib", f"{os.sep}pdb.py", f"{os.sep}bdb.py")
"""Code that may block: imports, which happen once, and debuggers."""


class Blocked:
    """User code that blocks the event loop, and where."""

    def __init__(self, owner: str, frame: FrameType, seconds: float) -> None:
        """`seconds`: the longest wait that was seen."""
        self.owner = owner
        self.function = frame.f_code.co_name
        self.filename = frame.f_code.co_filename
        self.line = frame.f_lineno
        self.seconds = seconds
        self.is_moved = False
        """Whether its next runs are made in threads."""

    @property
    def place(self) -> str:
        """The function and its line."""
        return f"`{self.function}` ({os.path.basename(self.filename)}:{self.line})"

    def __str__(self) -> str:
        told = f"{self.owner}: {self.place} blocks the event loop, {self.seconds:.2f} s at a time"
        cure = "use an async client, or asyncio.to_thread around that call"
        if self.is_moved:
            return f"{told}; its next runs are made in threads. To keep them in the loop, {cure}"
        return f"{told}, and every other rollout of its process waits meanwhile: {cure}"


@dataclass(slots=True)
class _BlockedLine:
    """The waits of one owner at one line."""

    section: Section | None = None
    """The last of the runs."""
    runs: int = 0
    longest_s: float = 0.0


class _Turn:
    """A turn of the loop that is due, while it executes a section."""

    def __init__(self, loop: asyncio.AbstractEventLoop, section: Section, frame: FrameType) -> None:
        self.section = section
        self.since = time.monotonic()
        self.has_come = False
        self.spot = (id(frame), frame.f_lasti)
        """Where the code was when it was looked at last."""
        self.interruptions = 0
        self.interrupted_at = 0.0
        self._loop = loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._come)

    def _come(self) -> None:
        self.has_come = True
        held_s = time.monotonic() - self.since
        if held_s >= MIN_HELD_S:
            excuse(self._loop, held_s)


class Watchdog:
    """Watches the event loop that runs in the thread which makes the watchdog."""

    def __init__(
        self,
        guards: Guards,
        on_blocked: Callable[[int, Blocked], None],
        on_stuck: Callable[[Any, str], None],
        *,
        blocked_s: float = BLOCKED_S,
        long_block_s: float = LONG_BLOCK_S,
    ) -> None:
        """`guards` have the sections under way. Both callbacks are called in this thread.

        `on_blocked(owner, what)`: an owner's code blocks the loop; may repeat.
        `on_stuck(job, why)`: a section ignores every interruption, the loop is lost.
        """
        self._guards = guards
        self._on_blocked = on_blocked
        self._on_stuck = on_stuck
        self._blocked_s = blocked_s
        self._long_block_s = long_block_s
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._blocked_lines: dict[tuple[int, str, int], _BlockedLine] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="osmosis-loop-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching; from any thread."""
        self._stopped.set()

    def _watch(self) -> None:
        turn: _Turn | None = None
        while not self._stopped.wait(POLL_INTERVAL_S):
            section, frame = self._section(), frame_of(self._thread)
            if frame is None:
                return
            if turn is None or turn.has_come or turn.section is not section:
                turn = None if section is None else _Turn(self._loop, section, frame)
            elif self._section() is section:  # and so the frame is of its code
                self._look(turn, frame)
            del frame

    def _section(self) -> Section | None:
        """Return the section whose code the loop executes, if it is in one."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self._guards.sections.get(task)

    def _look(self, turn: _Turn, frame: FrameType) -> None:
        """Report code that holds up a turn of the loop, and interrupt it when its time is up."""
        section, now = turn.section, time.monotonic()
        spot, turn.spot = turn.spot, (id(frame), frame.f_lasti)
        held_s = now - turn.since
        if self._guards.is_ending:
            if held_s >= MIN_HELD_S and self._is_interruption_due(turn, now):
                self._interrupt(section)
            return
        found = _user_frame(section, frame)
        if found is None:
            return
        is_over = held_s >= MIN_HELD_S and now >= section.until
        longest_s = held_s
        if not is_over and held_s < self._long_block_s:
            is_waiting = spot == turn.spot and held_s >= self._blocked_s
            longest_s = self._habit_s(section, found, held_s) if is_waiting else 0.0
        if longest_s:
            blocked = Blocked(section.name, found, longest_s)
            self._on_blocked(section.owner, blocked)
            if is_over:
                self._end(turn, f"{blocked.place} did not return to the event loop", now)

    def _habit_s(self, section: Section, frame: FrameType, waited_s: float) -> float:
        """Return the longest wait at a line where several runs have waited; 0 at any other."""
        key = (section.owner, frame.f_code.co_filename, frame.f_lineno)
        line = self._blocked_lines.setdefault(key, _BlockedLine())
        line.runs += line.section is not section
        line.section = section
        line.longest_s = max(line.longest_s, waited_s)
        return line.longest_s if line.runs >= MIN_BLOCKED_RUNS else 0.0

    def _end(self, turn: _Turn, held: str, now: float) -> None:
        """Interrupt code, again and again, and then give the loop up."""
        section = turn.section
        section.hold(held)
        if turn.interruptions <= MAX_INTERRUPTIONS and self._is_interruption_due(turn, now):
            if turn.interruptions <= MAX_INTERRUPTIONS:
                self._interrupt(section)
            else:
                self._on_stuck(section.job, section.held)

    def _is_interruption_due(self, turn: _Turn, now: float) -> bool:
        if now - turn.interrupted_at < INTERRUPT_RETRY_S:
            return False
        turn.interruptions += 1
        turn.interrupted_at = now
        return True

    def _interrupt(self, section: Section) -> None:
        if self._section() is section:
            raise_in_thread(self._thread)


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of code that is not the user's."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(os.path.join(path, "") for name in names if (path := sysconfig.get_path(name)))


@cache
def _ours() -> tuple[str, ...]:
    """Return the folders of this project's code: where it waits, as for a thread, all wait."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    packages = ("osmosis_ai", "pytest_osmosis", "osmosis_cli")
    return tuple(os.path.join(root, package, "") for package in packages)


def _user_frame(section: Section, innermost: FrameType) -> FrameType | None:
    """Return the user's frame that waits, else the innermost one; None where waiting is excused."""
    outermost = getattr(section.task.get_coro(), "cr_frame", None)
    found: FrameType | None = None
    is_of_library = False
    frame: FrameType | None = innermost
    while frame is not None and frame is not outermost:
        filename = frame.f_code.co_filename
        if filename.startswith(_EXCUSED[0]) or filename.endswith(_EXCUSED[1:]):
            return None
        if not filename.startswith(_ours()):
            is_library = filename.startswith(_libraries())
            is_of_library = is_of_library or (is_library and "-packages" in filename)
            found = found or (None if is_library else frame)
        frame = frame.f_back
    return found or (innermost if is_of_library else None)
