"""The root of an exception's chain, and what it is likely to come of where rollouts share things.

Tells by the words of asyncio, of clients on top of it, and of the standard library.
"""

from __future__ import annotations

import re
from contextlib import suppress

from osmosis_ai.error_text import error_text, named_error

_SHARED = (
    "likely cause: rollouts in flight share an object (a client, a session, a lock) that belongs "
    "to one event loop or thread. --batch-size 1 runs one rollout at a time; a class in the place "
    "of the function is made anew for each run, with a client of its own"
)
_HINTS = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in (
        (
            r"no (?:current|running) event loop",
            "a synchronous agent runs in a thread, which has no event loop: write "
            "asyncio.run(...), or declare the agent `async def` and await",
        ),
        (
            r"cannot be called from a running event loop|event loop is already running"
            r"|cannot run the event loop while another loop is running",
            "an `async def` agent runs in an event loop: await there, or declare the agent `def`, "
            "which runs in a thread",
        ),
        (
            r"loop is closed|(?:different|another|other) (?:event )?loop"
            r"|loop other than the current|should be used inside a task",
            _SHARED,
        ),
        (r"can only be used in that same thread|(?:different|another|wrong) thread", _SHARED),
        (
            r"another (?:operation|command|coroutine|task) is (?:already )?"
            r"(?:in progress|waiting|running|being executed)"
            r"|concurrent operations are not permitted"
            r"|generator (?:is )?already (?:running|executing)",
            _SHARED,
        ),
    )
)


def root_of(error: BaseException) -> BaseException:
    """Return the first of a chain, as a traceback has it; of a group, its first member's."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    with suppress(Exception):  # odd attributes of the user's class
        while each is not None and each not in seen:
            seen.append(each)
            each = _before(each)
    return seen[-1]


def _before(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    if error.__context__ is not None and not error.__suppress_context__:
        return error.__context__
    members = getattr(error, "exceptions", None)
    if not (isinstance(members, tuple) and members and isinstance(members[0], BaseException)):
        return None
    first: BaseException = members[0]
    return first


def hint_for(error: BaseException) -> str | None:
    """Return what an exception is likely to come of, and the cure, where its chain tells."""
    from osmosis_ai.models.client_exceptions import chain

    texts: list[str] = []
    with suppress(Exception):  # odd attributes of the user's class
        texts += (error_text(each) for each in chain(error) if isinstance(each, Exception))
    found = (hint for text in texts for pattern, hint in _HINTS if pattern.search(text))
    return next(found, None)


def is_of_sharing(error: BaseException) -> bool:
    """Return whether an exception is likely to come of what rollouts in flight share."""
    return hint_for(error) is _SHARED


def summed_up(error: BaseException) -> str:
    """Return an exception in one line, with its root and a hint where there is one."""
    root, hint = root_of(error), hint_for(error)
    if hint is None:
        return named_error(error)
    first = "" if root is error else f" ({named_error(root)})"
    return f"{named_error(error)}{first}; {hint}"


def introduction(error: BaseException) -> str:
    """Return the lines before a traceback: the root of its chain, and a hint; empty for neither."""
    root, hint = root_of(error), hint_for(error)
    first = named_error(root)
    if root is not error:
        first += f" (raised as {named_error(error)})"
    elif hint is None:
        return ""
    return "".join(f"{line}\n" for line in (first, hint) if line)
