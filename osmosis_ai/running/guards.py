"""Holds user code to its limits, whatever it does: its time, and what would end more than itself.

What it raises propagates untouched. `isolation` and `agent_thread` say in which event loop it runs.
Knows neither agents nor eval functions.

    Exception
      CodeEnded    the code ended in what would have ended more than its rollout
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from ..error_text import named_error
from .loop_thread import LoopInterrupted
from .main_loop import Call, run_directly
from .section import LeftBehind, Section

T = TypeVar("T")
_COUNTS_CANCELLATIONS = hasattr(asyncio.Task, "cancelling")
"""Whether tasks count their cancellations: since Python 3.11."""


class CodeEnded(Exception):
    """User code ended in what is no Exception, the cause of this; `str()` says in what."""

    def __init__(self, error: BaseException) -> None:
        if isinstance(error, SystemExit):
            what = f"called sys.exit({error.code!r})"
        elif isinstance(error, asyncio.CancelledError):
            what = "ended in CancelledError: something was cancelled"
        else:
            what = f"raised {named_error(error)}"
        super().__init__(what)


class Guards:
    """Runs user code, each call of it in a section, in one event loop."""

    def __init__(self) -> None:
        self.sections: dict[asyncio.Task[Any], Section] = {}
        """Those under way, by the task that awaits the code."""
        self.is_ending = False
        """Whether all code is cancelled: a cancellation is no error of the code's then."""

    async def run(self, section: Section, call: Call[T]) -> T:
        """Return what user code returns. `section.left` does what else the caller would do.

        Raises:
            DeadlineExceeded: when its time was up.
            LeftBehind: when it has ended after it was left behind.
            CodeEnded: when it ended in what would have ended more than its rollout.
        """
        task = asyncio.current_task()
        assert task is not None
        section.begin(task)
        self.sections[task] = section
        try:
            value = await self._begin(section, call)
            if (
                _COUNTS_CANCELLATIONS and task.cancelling()
            ):  # by the code itself, which is to have the error
                await asyncio.sleep(0)
            if not section.is_over:
                return value
        except Exception:
            if not section.is_over:
                raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_current(task):
                raise  # the coroutine is closed from outside
            if not section.is_over:
                if self.is_ending and isinstance(error, (asyncio.CancelledError, LoopInterrupted)):
                    raise asyncio.CancelledError from error
                raise CodeEnded(error) from error
        finally:
            section.end()
            del self.sections[task]
            if _COUNTS_CANCELLATIONS and task.cancelling() and not self.is_ending:
                task.uncancel()
        raise LeftBehind if section.is_left else section.late()

    async def apart(self, section: Section, call: Call[T]) -> T:
        """Do so in a separate task: when the code is left behind, DeadlineExceeded is raised."""
        loop = asyncio.get_running_loop()
        left: asyncio.Future[None] = loop.create_future()
        section.left = partial(left.set_result, None)
        task = loop.create_task(self._run_alone(section, call))
        task.add_done_callback(_retrieve_exception)
        try:
            await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            (section if task in self.sections else task).cancel()
            await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
            raise
        if left.done():
            raise section.late()
        return cast("T", task.result())

    async def _run_alone(self, section: Section, call: Call[T]) -> T | None:
        with suppress(LeftBehind):  # nothing waits for it
            return await self.run(section, call)
        return None

    def _begin(self, section: Section, call: Call[T]) -> Awaitable[T]:
        """Call the code, and return what is to be awaited."""
        return call(run_directly)


def _is_current(task: asyncio.Task[Any]) -> bool:
    """Return whether a task runs: not where its coroutine is closed from outside of it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no event loop runs
        return False


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Read an exception that nothing may wait for, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
