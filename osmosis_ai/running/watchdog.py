"""The thread that watches the event loop for user code that blocks it.

A synchronous client inside `async def` delays every rollout of the process. The watchdog samples
the stack of the loop's thread: a section of user code that waits at one line in two runs, or once
for long, is reported. A section that still holds the loop when its time is up is interrupted where
it is. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any

from .deadline import excuse
from .loop_call import INTERRUPT_RETRY_S
from .loop_thread import raise_in_thread
from .thread_frames import frame_of

if TYPE_CHECKING:
    from .guards import Guards
    from .section import Section

POLL_INTERVAL_S = 0.05
"""How often the watchdog samples the stack."""
BLOCKED_S = 0.05
"""A wait of this length in the loop's thread counts as blocking."""
LONG_BLOCK_S = 5.0
"""A single wait of this length is reported."""
MIN_BLOCKED_RUNS = 2
"""Shorter waits are reported after this many runs: a single slow import does not count."""
PING_AFTER_S = 1.0
"""Once the loop has been in one section for this long, it is tested whether it still turns."""
MAX_INTERRUPTIONS = 5
"""After this many the loop is given up: code that waits outside of Python ignores them."""

_EXCUSED = ("<frozen importlib", f"{os.sep}pdb.py", f"{os.sep}bdb.py")
"""Code that may block: imports, which happen once, and debuggers."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """User code that blocks the event loop, and where."""

    owner: str
    function: str
    filename: str
    line: int
    seconds: float
    """The longest wait that was seen."""

    @property
    def place(self) -> str:
        """The function and its line."""
        return f"`{self.function}` ({os.path.basename(self.filename)}:{self.line})"

    def __str__(self) -> str:
        return (
            f"{self.owner}: {self.place} blocks the event loop, {self.seconds:.2f} s"
            " at a time; its next runs are moved to threads. To keep them in the event loop, use "
            "an async client, or asyncio.to_thread around that call"
        )


@dataclass(slots=True)
class _BlockedLine:
    """The waits of one owner at one line."""

    sections: set[Section] = field(default_factory=set)
    longest_s: float = 0.0


class _Ping:
    """A callback that shows whether the loop still turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sent_at = time.monotonic()
        self.is_answered = False
        self._loop = loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self.is_answered = True
        excuse(self._loop, max(0.0, time.monotonic() - self.sent_at - POLL_INTERVAL_S))


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
        self._current: tuple[Section | None, float] = (None, 0.0)
        """The section in which the loop was found, and since when."""
        self._ping: _Ping | None = None
        self._interruptions: list[float] = []
        self._blocked_lines: dict[tuple[int, str, int], _BlockedLine] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="osmosis-loop-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching; from any thread."""
        self._stopped.set()

    def _watch(self) -> None:
        spot, since = None, 0.0
        while not self._stopped.wait(POLL_INTERVAL_S):
            section = self._section()
            frame = frame_of(self._thread)
            if frame is None:
                return
            if section is not self._section():
                continue  # the frame may be another's
            now = time.monotonic()
            if spot != (section, id(frame), frame.f_lasti):
                spot, since = (section, id(frame), frame.f_lasti), now
            elif section is not None and now - since >= self._blocked_s:
                self._note_wait(section, frame, now - since)
            self._check_turning(section, frame, now)
            del frame

    def _section(self) -> Section | None:
        """Return the section whose code the loop executes, if it is in one."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self._guards.sections.get(task)

    def _note_wait(self, section: Section, frame: FrameType, seconds: float) -> None:
        found = _user_frame(section, frame)
        if found is None:
            return
        key = (section.owner, found.f_code.co_filename, found.f_lineno)
        line = self._blocked_lines.setdefault(key, _BlockedLine())
        line.sections.add(section)
        line.longest_s = max(line.longest_s, seconds)
        if len(line.sections) >= MIN_BLOCKED_RUNS or seconds >= self._long_block_s:
            self._on_blocked(section.owner, _blocked(section, found, line.longest_s))

    def _check_turning(self, section: Section | None, frame: FrameType, now: float) -> None:
        """Find out whether a loop that stays in one section still turns, and act if not."""
        ping = self._ping
        is_turning = ping is not None and ping.is_answered
        if section is None or section is not self._current[0] or is_turning:
            self._current, self._ping = (section, now), None
            self._interruptions.clear()
        elif ping is None:
            if now - self._current[1] >= PING_AFTER_S:
                self._ping = _Ping(self._loop)
        elif self._guards.is_ending:
            if now - ping.sent_at >= PING_AFTER_S and self._is_interruption_due(now):
                self._interrupt(section)
        elif now - ping.sent_at >= min(self._long_block_s, section.until - self._current[1]):
            self._end_blocking(section, frame, now)

    def _end_blocking(self, section: Section, frame: FrameType, now: float) -> None:
        found = _user_frame(section, frame)
        if found is None:
            return
        blocked = _blocked(section, found, now - self._current[1])
        self._on_blocked(section.owner, blocked)
        if now < section.until or len(self._interruptions) > MAX_INTERRUPTIONS:
            return
        section.held = section.held or f"{blocked.place} did not return to the event loop"
        if self._is_interruption_due(now):
            if len(self._interruptions) <= MAX_INTERRUPTIONS:
                self._interrupt(section)
            else:
                self._on_stuck(section.job, section.held)

    def _is_interruption_due(self, now: float) -> bool:
        if self._interruptions and now - self._interruptions[-1] < INTERRUPT_RETRY_S:
            return False
        self._interruptions.append(now)
        return True

    def _interrupt(self, section: Section) -> None:
        if self._section() is section:
            raise_in_thread(self._thread)


def _blocked(section: Section, frame: FrameType, seconds: float) -> Blocked:
    code = frame.f_code
    return Blocked(section.name, code.co_name, code.co_filename, frame.f_lineno, seconds)


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of code that is not the user's."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(os.path.join(path, "") for name in names if (path := sysconfig.get_path(name)))


def _user_frame(section: Section, innermost: FrameType) -> FrameType | None:
    """Return the user's frame that waits, else the innermost one; None where waiting is excused."""
    outermost = getattr(section.task.get_coro(), "cr_frame", None)
    found: FrameType | None = None
    frame: FrameType | None = innermost
    while frame is not None and frame is not outermost:
        filename = frame.f_code.co_filename
        if filename.startswith(_EXCUSED[0]) or filename.endswith(_EXCUSED[1:]):
            return None
        if found is None and not filename.startswith(_libraries()):
            found = frame
        frame = frame.f_back
    return found or innermost
