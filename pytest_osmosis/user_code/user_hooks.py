"""What users may change of an evaluation, as plain callables: pytest's hooks stand behind them.

Each default changes nothing. Knows no pytest: `evaluation` puts the session's hooks in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class HookFailed(Exception):
    """A hook of the user's raised; `str()` names it and shows the user's own frames."""


@contextmanager
def blaming(hook: str) -> Iterator[None]:
    """What is raised in here is `hook`'s: HookFailed."""
    from .import_object import user_traceback

    try:
        yield
    except HookFailed:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's hook: what it raises is the message
        raise HookFailed(f"{hook} failed\n{user_traceback(error)}") from None


@dataclass(frozen=True, slots=True)
class UserHooks:
    """The hooks that users implement; None where there is no implementation."""

    load_rows: Callable[[Path], Iterable[Mapping[str, Any]] | None] | None = None
    """The rows of a file in a format of the user's own."""
    row_name: Callable[[Mapping[str, Any], int], str | None] | None = None
    """A row's name in node ids, from its columns and its index."""
    build_agent: Callable[[object, str], object | None] | None = None
    """The agent to evaluate, from what the option names."""
    classify_error: Callable[[BaseException], str | None] | None = None
    """Whose an error is that an agent raised: "agent" or "provider"."""
