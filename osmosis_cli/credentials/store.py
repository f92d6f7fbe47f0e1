"""The login that is used: the token in the environment, else the active one of those kept.

Sends nothing. A token is valid for the platform that issued it alone. Logins are kept in the
credentials file, their tokens in the system's keyring where the extra `keyring` is installed and
usable. A keyring may wait for its user, or without end: each call has a time limit, in a thread
that is then left behind.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from osmosis_ai.platform.address import platform_origin
from osmosis_ai.secret import Secret, check_token

from . import file
from .file import Tell
from .login import DEFAULT_PLATFORM, PLATFORM, KeptLogin, Login, LoginProblem, Logins, platform_url

T = TypeVar("T")

LIMIT_S = 3.0
SERVICE = "osmosis"
MODULE = "keyring"


class KeyringProblem(Exception):
    """The keyring cannot be used; `str()` says why."""


def is_keyring_installed() -> bool:
    """Return whether there is such a package; importing it is what may take long."""
    try:
        return importlib.util.find_spec(MODULE) is not None
    except (ImportError, ValueError):
        return False


def _keyring(verb: str, platform: str, workspace: str, *value: str) -> Any:
    """Set, get or delete a token; raise KeyringProblem."""
    name = f"{platform} {workspace}"
    return _within_limit(lambda: getattr(_backend(), f"{verb}_password")(SERVICE, name, *value))


def _get(platform: str, workspace: str) -> Secret:
    """Return a token; raise KeyringProblem."""
    value = _keyring("get", platform, workspace)
    if not isinstance(value, str):
        raise KeyringProblem("it has no such token")
    try:
        return check_token(value, "the token in the keyring")
    except ValueError as error:
        raise KeyringProblem(str(error)) from None


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


TOKEN = "OSMOSIS_TOKEN"
TOKEN_PLATFORM = "OSMOSIS_TOKEN_PLATFORM_URL"
CONFIG_DIR = "OSMOSIS_CONFIG_DIR"


def find_login(environ: Mapping[str, str] | None = None) -> Login | None:
    """Return the login for the chosen platform, None when there is none; raise LoginProblem."""
    environ = os.environ if environ is None else environ
    platform = platform_url(environ)
    if environ.get(TOKEN):
        return _from_environment(environ, platform)
    here = read_logins(environ).at(platform)
    if not here.workspaces:
        return None
    if here.active is None:
        known = ", ".join(map(repr, here.workspaces))
        raise LoginProblem(
            f"no workspace at {platform} is active: run `osmosis workspace switch NAME` ({known})"
        )
    login = here.workspaces[here.active]
    if login.is_expired(time.time()):
        when = f"{login.expiry:%Y-%m-%d at %H:%M} UTC"
        raise LoginProblem(f"your login expired on {when}: run `osmosis login`")
    return Login(
        platform_url=platform, token=find_token(platform, here.active, login), workspace=here.active
    )


def credentials_path(environ: Mapping[str, str]) -> Path:
    """Return where logins are kept."""
    if folder := environ.get(CONFIG_DIR):
        return Path(folder).expanduser() / "credentials.json"
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "osmosis" / "credentials.json"


def read_logins(environ: Mapping[str, str]) -> Logins:
    """Return what is kept, also what has expired; raise LoginProblem."""
    return file.read(credentials_path(environ))


def find_token(platform: str, workspace: str, login: KeptLogin) -> Secret:
    """Return the token of a login that is kept; raise LoginProblem."""
    if login.token is not None:
        return login.token
    try:
        return _get(platform, workspace)
    except KeyringProblem as problem:
        raise LoginProblem(
            f"the token of your login is in the keyring, and {problem}: unlock it, or log in "
            "again with `osmosis login --force`"
        ) from None


def check_keepable(environ: Mapping[str, str], tell: Tell) -> None:
    """Raise LoginProblem now if no login could be kept."""
    file.check_changeable(credentials_path(environ), tell)


def keep(
    environ: Mapping[str, str], platform: str, workspace: str, login: KeptLogin, tell: Tell
) -> None:
    """Keep a login and make it the active one; raise LoginProblem."""
    path = credentials_path(environ)
    stored = _in_keyring(platform, workspace, login, path, tell)
    file.change(path, lambda logins: logins.with_login(platform, workspace, stored), tell)


def forget(environ: Mapping[str, str], platform: str, workspace: str, tell: Tell) -> None:
    """Remove a login that is kept; raise LoginProblem."""
    path = credentials_path(environ)
    login = file.read(path).at(platform).workspaces.get(workspace)
    file.change(path, lambda logins: logins.without(platform, workspace), tell)
    if login is None or login.token is not None:
        return
    try:
        _keyring("delete", platform, workspace)
    except KeyringProblem as problem:
        tell(f"the token was not removed from the keyring: {problem}")


def switch(environ: Mapping[str, str], platform: str, workspace: str, tell: Tell) -> None:
    """Make another workspace, one with a login, the active one; raise LoginProblem."""
    path = credentials_path(environ)
    file.change(path, lambda logins: logins.switched(platform, workspace), tell)


def _in_keyring(
    platform: str, workspace: str, login: KeptLogin, path: Path, tell: Tell
) -> KeptLogin:
    """The login without its token where the keyring took that, else as it is."""
    if login.token is None or not is_keyring_installed():
        return login
    try:
        _keyring("set", platform, workspace, login.token.reveal())
    except KeyringProblem as problem:
        tell(f"the keyring cannot be used ({problem}): the token is in {path}, mode 0600")
        return login
    return replace(login, token=None)


def _from_environment(environ: Mapping[str, str], platform: str) -> Login:
    bound = environ.get(TOKEN_PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        issuer = platform_origin(bound)
        token = check_token(environ[TOKEN], TOKEN)
    except ValueError as error:
        raise LoginProblem(str(error)) from None
    if issuer != platform:
        raise LoginProblem(
            f"{TOKEN} is for {issuer}, but {PLATFORM} names {platform}: if the token was issued "
            f"there, set {TOKEN_PLATFORM} to the same address"
        )
    return Login(platform_url=platform, token=token)
