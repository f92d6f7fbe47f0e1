"""Tokens in the system's keyring, where the extra `keyring` is installed and usable.

A keyring that is locked may ask its user, and one without D-Bus may wait without end: each call
has a time limit, in a thread that is then left behind. Knows no file.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from osmosis_ai.secret import Secret, check_token

T = TypeVar("T")

LIMIT_S = 3.0
SERVICE = "osmosis"
MODULE = "keyring"


class KeyringProblem(Exception):
    """The keyring cannot be used; `str()` says why."""


def is_installed() -> bool:
    """Return whether there is such a package; importing it is what may take long."""
    try:
        return importlib.util.find_spec(MODULE) is not None
    except (ImportError, ValueError):
        return False


def put(platform: str, workspace: str, token: Secret) -> None:
    """Keep a token; raise KeyringProblem."""
    name = _name(platform, workspace)
    _within_limit(lambda: _backend().set_password(SERVICE, name, token.reveal()))


def get(platform: str, workspace: str) -> Secret:
    """Return a token; raise KeyringProblem."""
    name = _name(platform, workspace)
    value = _within_limit(lambda: _backend().get_password(SERVICE, name))
    if not isinstance(value, str):
        raise KeyringProblem("it has no such token")
    try:
        return check_token(value, "the token in the keyring")
    except ValueError as error:
        raise KeyringProblem(str(error)) from None


def delete(platform: str, workspace: str) -> None:
    """Remove a token; raise KeyringProblem."""
    name = _name(platform, workspace)
    _within_limit(lambda: _backend().delete_password(SERVICE, name))


def _name(platform: str, workspace: str) -> str:
    return f"{platform} {workspace}"


def _backend() -> Any:
    """The keyring that the package chose; raise KeyringProblem where it is not safe."""
    backend = importlib.import_module(MODULE).get_keyring()
    if backend.priority < 1:  # what the package itself does not recommend: none, or plain text
        raise KeyringProblem("this system has none that is safe")
    return backend


def _within_limit(call: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001  # each backend has its own
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name="osmosis-keyring")
    thread.start()
    thread.join(LIMIT_S)
    if thread.is_alive():
        raise KeyringProblem(f"it did not answer within {LIMIT_S:g} s")
    if results:
        return results[0]
    [error] = errors
    if isinstance(error, KeyringProblem):
        raise error
    # Its text may quote what was to be kept.
    raise KeyringProblem(f"it failed with {type(error).__name__}")
