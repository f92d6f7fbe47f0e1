"""The first signal interrupts the session once; the handlers that were there before come back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from pytest_osmosis.session.signals import (
    CancelOnInterrupt,
    SignalHandlers,
    interrupts_held,
    leave_to_controller,
)

NAMES = ["SIGINT", "SIGTERM", "SIGHUP"]


class Handlers(SignalHandlers):
    """Handlers that note which signal was reported."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        super().__init__(self.reported.append)


@pytest.fixture
def handlers() -> Iterator[Handlers]:
    before = {name: signal.getsignal(getattr(signal, name)) for name in NAMES}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests run under nohup
    handlers = Handlers()
    yield handlers
    handlers.remove()
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_signal_is_one_keyboard_interrupt_that_says_which_it_was(
    handlers: Handlers, name: str
):
    handlers.install()
    with pytest.raises(KeyboardInterrupt, match=f"by {name}"):
        signal.raise_signal(getattr(signal, name))
    assert handlers.received == name and handlers.reported == [name]


def test_a_later_sigterm_does_not_interrupt_the_end_of_the_session(handlers: Handlers):
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)
    assert handlers.reported == ["SIGHUP"]


class Finalized:
    """Interrupted in its finalizer, where Python drops what a signal handler raises."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_sigint_is_noted_even_where_its_exception_is_lost(handlers: Handlers):
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not handlers.repeated
    Finalized()
    assert handlers.repeated


def test_while_pytest_notes_an_interrupt_a_second_sigint_waits_and_a_third_does_not(
    handlers: Handlers,
):
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    cancelled: list[bool] = []
    CancelOnInterrupt(handlers, lambda: cancelled.append(True)).pytest_keyboard_interrupt()
    assert cancelled == [True]
    signal.raise_signal(signal.SIGINT)
    assert handlers.repeated
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("name", NAMES)
def test_while_reports_are_written_a_first_signal_waits_and_a_sigint_after_it_does_not(
    handlers: Handlers, name: str
):
    handlers.install()
    handlers.is_reporting = True
    signal.raise_signal(getattr(signal, name))
    assert handlers.reported == [name] and not handlers.repeated
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_second_sigint_goes_to_the_handler_that_was_there_before(handlers: Handlers):
    theirs: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: theirs.append(number))
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    assert theirs == [signal.SIGINT] and handlers.reported == ["SIGTERM"]


def test_removing_the_handlers_restores_those_before_also_after_a_signal(
    handlers: Handlers,
):
    before = [signal.getsignal(getattr(signal, name)) for name in NAMES]
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    handlers.remove()
    handlers.remove()
    assert [signal.getsignal(getattr(signal, name)) for name in NAMES] == before


def test_a_signal_that_is_ignored_stays_ignored(handlers: Handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    handlers.install()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.raise_signal(signal.SIGHUP)
    assert handlers.received is None


def test_outside_the_main_thread_nothing_is_installed(handlers: Handlers):
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=handlers.install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) == before


def test_a_worker_takes_no_sigint_and_programs_it_starts_still_do(handlers: Handlers):
    leave_to_controller()
    signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_a_signal_amid_an_import_waits_until_the_import_system_has_returned(
    handlers: Handlers,
):
    handlers.install()
    amid = compile("signal.raise_signal(signal.SIGINT)", "<frozen importlib._bootstrap>", "exec")
    exec(amid, {"signal": signal})
    with pytest.raises(KeyboardInterrupt, match="by SIGINT"):
        threading.Event().wait(60)
    assert handlers.reported == ["SIGINT"]


def test_an_interrupt_waits_until_processes_are_started(handlers: Handlers):
    handlers.install()
    reached = []
    with pytest.raises(KeyboardInterrupt, match="by SIGINT"), interrupts_held():
        signal.raise_signal(signal.SIGINT)
        reached.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert reached == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
