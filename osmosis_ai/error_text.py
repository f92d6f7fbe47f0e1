"""What an exception of user code says, also where its own text is broken."""

from __future__ import annotations

_BROKEN = "<exception str() failed>"
"""What tracebacks of Python say in its place."""


def error_text(error: BaseException) -> str:
    """Return `str(error)`; a placeholder where that raises."""
    try:
        return str.__str__(str(error))  # a subclass of str has code of its own
    except (Exception, SystemExit):  # noqa: BLE001  the user's `__str__`: the error is what counts
        return _BROKEN


def named_error(error: BaseException) -> str:
    """Return the name of an exception's class and its text, `KeyError: 'boom'`."""
    name, text = type(error).__name__, error_text(error)
    return f"{name}: {text}" if text else name
