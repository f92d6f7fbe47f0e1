"""Blocking calls from async code and the reverse, in threads that end with the program.

`run_blocking` also works inside a running event loop, as in a notebook.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, run in a separate event loop."""
    __tracebackhide__ = True
    if not _in_running_loop():
        return asyncio.run(work)
    return _begun(partial(contextvars.copy_context().run, asyncio.run, work)).result()


async def in_daemon_thread(function: Callable[..., T], *args: Any, **named: Any) -> T:
    """Return what a function returns, as `asyncio.to_thread`, but let the program end meanwhile."""
    return await asyncio.wrap_future(_begun(partial(function, *args, **named)))


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _begun(function: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # the caller may be cancelled; the function continues

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:  # noqa: BLE001  # raised in the thread that waits
            done.set_exception(error)

    threading.Thread(target=run, name="osmosis-blocking", daemon=True).start()
    return done
