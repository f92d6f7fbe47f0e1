"""Coroutines for code that is not async, also inside a running event loop, as in a notebook."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, run in an event loop of its own."""
    __tracebackhide__ = True
    return _run_in_thread(work) if _in_running_loop() else asyncio.run(work)


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    __tracebackhide__ = True
    context = contextvars.copy_context()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(context.run(asyncio.run, work))
        except BaseException as error:  # noqa: BLE001  # carried over to the thread that waits
            done.set_exception(error)

    threading.Thread(target=run, name="osmosis-blocking", daemon=True).start()
    return done.result()
