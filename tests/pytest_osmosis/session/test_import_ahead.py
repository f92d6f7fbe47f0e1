"""A module is imported in a thread, and a failure is left to the import that needs it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from pytest_osmosis.session import import_ahead


@pytest.fixture
def imported_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception | None], SimpleQueue[Any]]:
    """Put a stand-in for the import; it notes the thread that calls it, and may raise."""

    def replaced(error: Exception | None) -> SimpleQueue[Any]:
        threads: SimpleQueue[Any] = SimpleQueue()

        def noted(name: str) -> None:
            threads.put((name, threading.current_thread()))
            if error is not None:
                raise error

        monkeypatch.setattr(import_ahead, "import_module", noted)
        return threads

    return replaced


@pytest.mark.parametrize("error", [None, ImportError("no aiohttp here")])
def test_it_is_imported_in_another_thread_whether_it_can_be_or_not(
    imported_by: Callable[[Exception | None], SimpleQueue[Any]],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
) -> None:
    threads = imported_by(error)
    monkeypatch.delitem(sys.modules, "aiohttp")
    import_ahead.import_ahead("aiohttp")
    name, thread = threads.get(timeout=60)
    thread.join()  # an exception that left it would be a warning, and so an error
    assert name == "aiohttp"
    assert thread is not threading.current_thread()


def test_nothing_is_started_where_it_is_there_already(
    imported_by: Callable[[Exception | None], SimpleQueue[Any]],
) -> None:
    import aiohttp  # noqa: F401

    threads = imported_by(None)
    import_ahead.import_ahead("aiohttp")
    assert threads.empty()
