"""User code that blocks the event loop: noticed, and from then on run in threads of its own.

A synchronous client inside `async def` holds up every rollout of the process. A thread looks at
where the loop's thread stands; when a section of user code waits at one spot in two runs, or once
for long, what its owner does from then on runs in a thread and an event loop of its own, and calls
what belongs to the process's loop from afar. A section that does not let go of the loop when its
time is up is interrupted where it stands. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar

from .timeouts import excuse

T = TypeVar("T")

LOOK_S = 0.02
"""How often the watch looks."""
BLOCKED_S = 0.05
"""A wait of so long within the loop's thread counts as one that blocks it."""
LONG_S = 5.0
"""A single wait of so long is enough."""
RUNS = 2
"""Shorter ones have to be met in so many runs: loading something once is no habit."""
HELD_S = 1.0
"""A loop that has been within one section for so long is asked whether it still turns."""
INSIST_S = 1.0
"""How long an interruption may take to be heeded before it is repeated."""
INTERRUPTIONS = 5
"""So many are tried; code that waits outside of Python heeds none."""

_EXCUSED = ("<frozen importlib", f"{os.sep}pdb.py", f"{os.sep}bdb.py")
"""Imports happen once, and whoever debugs knows that everything waits."""
_FOREIGN_LOOP = ("different loop", "different event loop", "should be used inside a task")


class BlockedLoop(UserWarning):
    """Code of the user's holds up the event loop, and was moved out of its way."""


class LoopInterrupted(BaseException):
    """Raised within code that does not let go of the event loop."""


class LoopHeld(Exception):
    """Code did not let go of the event loop when its time was up; `str()` says which."""


class Blocked(NamedTuple):
    """What was noticed."""

    owner: str
    function: str
    filename: str
    line: int
    seconds: float
    """The longest wait that was seen."""

    @property
    def place(self) -> str:
        """The function, and where it stood."""
        return f"`{self.function}` ({os.path.basename(self.filename)}:{self.line})"

    def __str__(self) -> str:
        return (
            f"{self.owner}: {self.place} blocks the event loop, {self.seconds:.2f} s"
            " at a time; it runs in threads of its own from here on. An async client, or "
            "asyncio.to_thread around that call, would spare them"
        )


class Home(Protocol):
    """Runs coroutines in the process's event loop, wherever it is called."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """Await the coroutine's result."""


def here(coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """`Home` for what runs there anyway."""
    return coroutine


class Isolate(Protocol):
    """Runs a section of user code where it holds up nobody."""

    def __call__(
        self,
        owner: object,
        name: str,
        section: Callable[[Home], Coroutine[Any, Any, T]],
        /,
        *,
        within_s: float = math.inf,
    ) -> Awaitable[T]:
        """Await the section's result; `name` tells the user whose it is.

        Raises:
            LoopHeld: when it held the loop beyond `within_s` seconds.
        """


async def within_loop(
    owner: object,
    name: str,
    section: Callable[[Home], Coroutine[Any, Any, T]],
    *,
    within_s: float = math.inf,
) -> T:
    """`Isolate` that watches nothing."""
    return await section(here)


@dataclass(slots=True, eq=False)
class _Section:
    """User code that is under way."""

    owner: int
    name: str
    until: float = math.inf
    """`time.monotonic()` by which it must have let go of the loop."""
    job: Any = None
    held: str = ""
    """What is said of it once it was interrupted."""


@dataclass(slots=True)
class _Habit:
    """Waits of one owner at one line."""

    sections: set[_Section] = field(default_factory=set)
    longest_s: float = 0.0


class Isolation:
    """Runs sections in the loop, or apart from it once their owner has blocked it."""

    def __init__(
        self,
        tell: Callable[[Blocked], None],
        *,
        blocked_s: float = BLOCKED_S,
        long_s: float = LONG_S,
        on_stuck: Callable[[Any, str], None] = lambda job, held: None,
    ) -> None:
        """`on_stuck(job, what is said)`: the loop is lost; from the watch's thread."""
        self._tell = tell
        self._on_stuck = on_stuck
        self._blocked_s = blocked_s
        self._long_s = long_s
        self._apart: set[int] = set()
        self._bound: set[int] = set()
        """Owners that need the process's loop, whatever it costs."""
        self._watch: _Watch | None = None

    async def run(
        self,
        owner: object,
        name: str,
        section: Callable[[Home], Coroutine[Any, Any, T]],
        *,
        within_s: float = math.inf,
        job: Any = None,
    ) -> T:
        """Run `section(home)`; called in the process's event loop.

        A section that turns out to need that loop, since it shares a lock or a client between
        runs, is run in it a second time.
        """
        if id(owner) in self._apart:
            try:
                return await _apart(section)
            except Exception as error:
                if not _needs_home(error):
                    raise
                self._bound.add(id(owner))
                self._apart.discard(id(owner))
        if self._watch is None:
            self._watch = _Watch(self._noticed, self._on_stuck, self._blocked_s, self._long_s)
        until = time.monotonic() + within_s
        return await _watched(_Section(id(owner), name, until, job), section)

    def release(self) -> None:
        """The session ends: interrupt whoever holds the loop from here on; from any thread."""
        if self._watch is not None:
            self._watch.release()

    def close(self) -> None:
        """Watch no longer."""
        if self._watch is not None:
            self._watch.stop()

    def _noticed(self, owner: int, blocked: Blocked) -> None:
        if owner not in self._apart and owner not in self._bound:
            self._apart.add(owner)
            self._tell(blocked)


def _needs_home(error: BaseException | None) -> bool:
    """Whether asyncio or aiohttp refused an object that belongs to another event loop."""
    for _ in range(10):
        if error is None:
            break
        if isinstance(error, RuntimeError) and any(said in str(error) for said in _FOREIGN_LOOP):
            return True
        error = error.__cause__ or error.__context__
    return False


async def _watched(section: _Section, call: Callable[[Home], Coroutine[Any, Any, T]]) -> T:
    """The watch knows sections by this frame and its argument `section`."""
    try:
        return await call(here)
    except LoopInterrupted:
        if section.held:
            raise LoopHeld(section.held) from None
        raise asyncio.CancelledError from None


class _Turn:
    """Whether the loop has come round since it was asked to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asked = time.monotonic()
        self.came = False
        self._loop = loop
        with contextlib.suppress(RuntimeError):  # closed: nobody is held up any more
            loop.call_soon_threadsafe(self._come)

    def _come(self) -> None:
        self.came = True
        excuse(self._loop, max(0.0, time.monotonic() - self.asked - LOOK_S))


class _Watch:
    """The thread that looks."""

    def __init__(
        self,
        noticed: Callable[[int, Blocked], None],
        on_stuck: Callable[[Any, str], None],
        blocked_s: float,
        long_s: float,
    ) -> None:
        self._noticed = noticed
        self._on_stuck = on_stuck
        self._loop = asyncio.get_running_loop()
        self._within: tuple[_Section | None, float] = (None, 0.0)
        """The section in which the loop was found, and since when."""
        self._turn: _Turn | None = None
        self._ending = False
        self._interruptions: list[float] = []
        self._blocked_s = blocked_s
        self._long_s = long_s
        self._watched = threading.get_ident()
        self._habits: dict[tuple[int, str, int], _Habit] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._look, name="osmosis-loop-watch", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _look(self) -> None:
        spot, since = None, 0.0
        while not self._stopped.wait(LOOK_S):
            frame = sys._current_frames().get(self._watched)
            if frame is None:
                return
            section = _section_of(frame)
            now = time.monotonic()
            if spot != (section, id(frame), frame.f_lasti):
                spot, since = (section, id(frame), frame.f_lasti), now
            elif section is not None and now - since >= self._blocked_s:
                self._waits(section, frame, now - since)
            self._follow(section, frame, now)
            del frame

    def _follow(self, section: _Section | None, frame: FrameType, now: float) -> None:
        """Does the loop, found within one section for long, still turn?"""
        turn = self._turn
        if section is None or section is not self._within[0] or (turn is not None and turn.came):
            self._within, self._turn = (section, now), None
            self._interruptions.clear()
        elif turn is None:
            if now - self._within[1] >= HELD_S:
                self._turn = _Turn(self._loop)
        elif self._ending:
            if now - turn.asked >= HELD_S and self._insists(now):
                self._interrupt(section)
        elif now - turn.asked >= min(self._long_s, section.until - self._within[1]):
            self._holds(section, frame, now)

    def _holds(self, section: _Section, frame: FrameType, now: float) -> None:
        found = _user_frame(frame)
        if found is None:
            return
        code, seconds = found.f_code, now - self._within[1]
        blocked = Blocked(section.name, code.co_name, code.co_filename, found.f_lineno, seconds)
        self._noticed(section.owner, blocked)
        if now < section.until or len(self._interruptions) > INTERRUPTIONS:
            return
        section.held = section.held or f"{blocked.place} did not let go of the event loop"
        if self._insists(now):
            if len(self._interruptions) <= INTERRUPTIONS:
                self._interrupt(section)
            else:
                self._on_stuck(section.job, section.held)

    def _insists(self, now: float) -> bool:
        """Whether it is time to interrupt, once more or for the first time."""
        if self._interruptions and now - self._interruptions[-1] < INSIST_S:
            return False
        self._interruptions.append(now)
        return True

    def release(self) -> None:
        self._ending = True

    def _interrupt(self, section: _Section) -> None:
        frame = sys._current_frames().get(self._watched)
        if _section_of(frame) is section:
            _raise_in(self._watched)

    def _waits(self, section: _Section, frame: FrameType, seconds: float) -> None:
        found = _user_frame(frame)
        if found is None:
            return
        code = found.f_code
        habit = self._habits.setdefault((section.owner, code.co_filename, found.f_lineno), _Habit())
        habit.sections.add(section)
        habit.longest_s = max(habit.longest_s, seconds)
        if len(habit.sections) >= RUNS or seconds >= self._long_s:
            blocked = Blocked(
                section.name, code.co_name, code.co_filename, found.f_lineno, habit.longest_s
            )
            self._noticed(section.owner, blocked)


def _raise_in(thread: int) -> None:
    """Raise LoopInterrupted where the thread stands, once it executes Python again."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(LoopInterrupted)
    )


def _section_of(frame: FrameType | None) -> _Section | None:
    while frame is not None:
        if frame.f_code is _watched.__code__:
            section: _Section = frame.f_locals["section"]
            return section
        frame = frame.f_back
    return None


@cache
def _libraries() -> tuple[str, ...]:
    """Folders of code that is not the user's."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(os.path.join(path, "") for name in names if (path := sysconfig.get_path(name)))


def _user_frame(innermost: FrameType) -> FrameType | None:
    """The user's frame that waits, or the innermost one; None where waiting is excused."""
    found: FrameType | None = None
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code is not _watched.__code__:
        filename = frame.f_code.co_filename
        if filename.startswith(_EXCUSED[0]) or filename.endswith(_EXCUSED[1:]):
            return None
        if found is None and not filename.startswith(_libraries()):
            found = frame
        frame = frame.f_back
    return found or innermost


async def _apart(section: Callable[[Home], Coroutine[Any, Any, T]]) -> T:
    """Run a section in a thread and a loop of its own; cancelled here, it is cancelled there."""
    work = _Work(section, asyncio.get_running_loop())
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(work.run,), name="osmosis-apart", daemon=True
    )
    thread.start()
    try:
        await asyncio.wait([work.ended])
    except asyncio.CancelledError:
        work.cancel()
        insisting = work.home.call_later(INSIST_S, work.interrupt, thread)
        await asyncio.wait([work.ended])  # its cleanup is part of it
        insisting.cancel()
        if not work.ended.cancelled():
            work.ended.exception()  # nobody asks for it any more
        raise
    result: T = work.ended.result()
    return result


class _Work:
    """One section in its own thread."""

    def __init__(
        self,
        section: Callable[[Home], Coroutine[Any, Any, Any]],
        home: asyncio.AbstractEventLoop,
    ) -> None:
        self.ended: asyncio.Future[Any] = home.create_future()
        self.home = home
        self._section = section
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    def run(self) -> None:
        """The thread: the section to its end, its result handed over, then what it left behind."""
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            settle: Callable[[Any], Any] = self.ended.set_result
            value: Any = loop.run_until_complete(self._main())
        except asyncio.CancelledError:
            settle, value = self.ended.cancel, "cancelled"
        except BaseException as error:  # noqa: BLE001 - handed to whoever awaits the section
            settle, value = self.ended.set_exception, error
        self._deliver(settle, value)
        _end(loop)

    def cancel(self) -> None:
        """From the process's loop; code that blocks does not notice before it is done."""
        self._cancelled = True
        with contextlib.suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._cancel)

    def interrupt(self, thread: threading.Thread) -> None:
        """It did not heed its cancellation: code that spins is ended, code that waits is not."""
        frame = sys._current_frames().get(thread.ident or 0)
        while frame is not None and frame.f_code is not _Work._main.__code__:
            frame = frame.f_back
        if frame is not None and thread.ident is not None:
            _raise_in(thread.ident)

    async def _main(self) -> Any:
        self._task = asyncio.current_task()
        if self._cancelled:
            raise asyncio.CancelledError
        return await self._section(self._at_home)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _at_home(self, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.home))

    def _deliver(self, settle: Callable[[Any], Any], value: Any) -> None:
        def settle_once() -> None:
            if not self.ended.done():
                settle(value)

        with contextlib.suppress(RuntimeError):  # the session is over: nobody waits any more
            self.home.call_soon_threadsafe(settle_once)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """What `asyncio.run` does at the end."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
