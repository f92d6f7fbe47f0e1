"""The root of a chain of exceptions, and the hint that its words are worth."""

from __future__ import annotations

import itertools

import pytest

from pytest_osmosis.rollouts.root_cause import hint_for, introduction, is_of_sharing, root_of


class ConnectionFailed(Exception):
    pass


def raised(*errors: BaseException, implicitly: bool = False) -> BaseException:
    """The last of some exceptions, each raised from the one before it."""
    for before, error in itertools.pairwise(errors):
        if implicitly:
            error.__context__ = before
        else:
            error.__cause__ = before
    return errors[-1]


CLOSED = "Event loop is closed"


@pytest.mark.parametrize("implicitly", [False, True])
def test_the_root_of_a_chain_stands_first(implicitly: bool):
    root = RuntimeError("no drawer")
    error = raised(root, OSError("x"), ConnectionFailed("Connection error."), implicitly=implicitly)
    assert root_of(error) is root
    said = "RuntimeError: no drawer (raised as ConnectionFailed: Connection error.)\n"
    assert introduction(error) == said


def test_one_that_came_of_nothing_needs_no_introduction():
    alone, hidden = KeyError("x"), ValueError("y")
    hidden.__context__, hidden.__suppress_context__ = KeyError("x"), True
    assert introduction(alone) == introduction(hidden) == ""


def test_a_chain_that_comes_back_to_itself_has_an_end():
    one, other = KeyError("x"), ValueError("y")
    one.__context__, other.__context__ = other, one
    assert root_of(one) is other


@pytest.mark.parametrize(
    "words",
    [
        "Event loop is closed",
        "This event loop is closed.",
        "Task <Task pending> got Future <Future pending> attached to a different loop",
        "<asyncio.locks.Lock object at 0x1> is bound to a different event loop",
        "<Queue> is bound to a different event loop",
        "the session was created in another event loop",
        "Non-thread-safe operation invoked on an event loop other than the current one",
        "Timeout context manager should be used inside a task",
        "SQLite objects created in a thread can only be used in that same thread. The object was",
        "cannot perform operation: another operation is in progress",
        "read() called while another coroutine is already waiting for incoming data",
        "cannot call recv while another coroutine is already running recv",
        "anext(): asynchronous generator is already running",
        "generator already executing",
    ],
)
def test_words_of_shared_objects_name_concurrency_and_both_cures(words: str):
    error = raised(RuntimeError(words), ConnectionFailed("Connection error."))
    assert is_of_sharing(error) and is_of_sharing(RuntimeError(words))
    hint = hint_for(error) or ""
    assert "--batch-size 1" in hint and "a class" in hint and "made anew for each run" in hint
    assert introduction(error).splitlines()[1] == hint
    assert introduction(RuntimeError(words)) == f"RuntimeError: {words}\n{hint}\n"


def test_members_of_a_group_are_looked_at_too():
    group = RuntimeError("unhandled errors in a TaskGroup (1 sub-exception)")
    group.exceptions = (raised(RuntimeError(CLOSED), OSError("x")),)  # type: ignore[attr-defined]
    assert is_of_sharing(group)
    assert introduction(group).startswith(f"RuntimeError: {CLOSED} (raised as ")


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        ("There is no current event loop in thread 'osmosis-call'.", "asyncio.run(...)"),
        ("no running event loop", "asyncio.run(...)"),
        ("asyncio.run() cannot be called from a running event loop", "declare the agent `def`"),
        ("This event loop is already running", "declare the agent `def`"),
        ("Cannot run the event loop while another loop is running", "declare the agent `def`"),
    ],
)
def test_a_loop_that_is_missing_or_in_the_way_has_a_cure_of_its_own(words: str, cure: str):
    assert cure in (hint_for(RuntimeError(words)) or "")
    assert not is_of_sharing(RuntimeError(words))


@pytest.mark.parametrize(
    "words", ["Connection error.", "Too many concurrent requests", "the loop ended", "closed"]
)
def test_other_words_are_worth_no_hint(words: str):
    assert hint_for(RuntimeError(words)) is None
