"""User code that blocks the event loop: noticed, and from then on run in threads of its own.

A synchronous client inside `async def` holds up every rollout of the process. A thread looks at
where the loop's thread stands; when a section of user code waits at one spot in two runs, or once
for long, what its owner does from then on runs in a thread and an event loop of its own, and calls
what belongs to the process's loop from afar. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

LOOK_S = 0.02
"""How often the watch looks."""
BLOCKED_S = 0.05
"""A wait of so long within the loop's thread counts as one that blocks it."""
LONG_S = 5.0
"""A single wait of so long is enough."""
RUNS = 2
"""Shorter ones have to be met in so many runs: loading something once is no habit."""

_LIBRARIES = tuple(
    os.path.join(path, "")
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_path(name))
)
_EXCUSED = ("<frozen importlib", f"{os.sep}pdb.py", f"{os.sep}bdb.py")
"""Imports happen once, and whoever debugs knows that everything waits."""
_FOREIGN_LOOP = ("different loop", "different event loop", "should be used inside a task")


class BlockedLoop(UserWarning):
    """Code of the user's holds up the event loop, and was moved out of its way."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """What was noticed."""

    owner: str
    function: str
    filename: str
    line: int
    seconds: float
    """The longest wait that was seen."""

    def __str__(self) -> str:
        where = f"{os.path.basename(self.filename)}:{self.line}"
        return (
            f"{self.owner}: `{self.function}` ({where}) blocks the event loop, {self.seconds:.2f} s"
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
        self, owner: object, name: str, section: Callable[[Home], Coroutine[Any, Any, T]], /
    ) -> Awaitable[T]:
        """Await the section's result; `name` tells the user whose it is."""


async def within_loop(
    owner: object, name: str, section: Callable[[Home], Coroutine[Any, Any, T]]
) -> T:
    """`Isolate` that watches nothing."""
    return await section(here)


@dataclass(slots=True, eq=False)
class _Section:
    """User code that is under way."""

    owner: int
    name: str


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
    ) -> None:
        self._tell = tell
        self._blocked_s = blocked_s
        self._long_s = long_s
        self._apart: set[int] = set()
        self._bound: set[int] = set()
        """Owners that need the process's loop, whatever it costs."""
        self._watch: _Watch | None = None

    async def run(
        self, owner: object, name: str, section: Callable[[Home], Coroutine[Any, Any, T]]
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
            self._watch = _Watch(self._noticed, self._blocked_s, self._long_s)
        return await _watched(_Section(id(owner), name), section)

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
    return await call(here)


class _Watch:
    """The thread that looks."""

    def __init__(
        self, noticed: Callable[[int, Blocked], None], blocked_s: float, long_s: float
    ) -> None:
        self._noticed = noticed
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
            del frame

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


def _section_of(frame: FrameType | None) -> _Section | None:
    while frame is not None:
        if frame.f_code is _watched.__code__:
            section: _Section = frame.f_locals["section"]
            return section
        frame = frame.f_back
    return None


def _user_frame(innermost: FrameType) -> FrameType | None:
    """The user's frame that waits, or the innermost one; None where waiting is excused."""
    found: FrameType | None = None
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code is not _watched.__code__:
        filename = frame.f_code.co_filename
        if filename.startswith(_EXCUSED[0]) or filename.endswith(_EXCUSED[1:]):
            return None
        if found is None and not filename.startswith(_LIBRARIES):
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
        await asyncio.wait([work.ended])  # its cleanup is part of it
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
        self._section = section
        self._home = home
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

    async def _main(self) -> Any:
        self._task = asyncio.current_task()
        if self._cancelled:
            raise asyncio.CancelledError
        return await self._section(self._at_home)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _at_home(self, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._home))

    def _deliver(self, settle: Callable[[Any], Any], value: Any) -> None:
        def settle_once() -> None:
            if not self.ended.done():
                settle(value)

        with contextlib.suppress(RuntimeError):  # the session is over: nobody waits any more
            self._home.call_soon_threadsafe(settle_once)


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
