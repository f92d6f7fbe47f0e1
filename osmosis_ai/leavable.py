"""User code that is awaited until it is left: from then on it is never resumed.

Code that swallows its cancellation never ends otherwise, and its event loop does not either.
Knows no deadline.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Leavable(Generic[T]):
    """An awaitable over a coroutine; `leave`, then cancel the task that awaits it."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._left = False

    def leave(self) -> None:
        """Resume the coroutine no more: the next cancellation ends what awaits it."""
        self._left = True

    def where(self) -> str:
        """Return what the coroutine is at: the innermost places."""
        places: list[str] = []
        inner: Any = self._work
        while frame := getattr(inner, "cr_frame", None):
            code = frame.f_code
            places.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
            inner = inner.cr_await
        return " > ".join(places[-3:]) or "ended"

    def __await__(self) -> Generator[Any, Any, T]:
        """Pass on what the coroutine awaits and what is thrown into it, until it is left."""
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(sent) if thrown is None else self._work.throw(thrown)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            thrown = None  # its traceback has this frame: a cycle
            try:
                sent = yield awaited
            except BaseException as error:
                if self._left:
                    with suppress(RuntimeError):  # it swallows that as well
                        self._work.close()
                    raise
                thrown = error
