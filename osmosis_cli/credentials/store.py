"""The login that is used: the token in the environment, else the active one of those kept.

Sends nothing. A token is returned with the platform that issued it, and is valid for that one
only. What is kept is in the credentials file; the tokens themselves are in the keyring where there
is a usable one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from osmosis_ai.platform.address import platform_origin
from osmosis_ai.secret import Secret, check_token

from . import file, keyring_tokens
from .document import Logins
from .file import Tell
from .keyring_tokens import KeyringProblem
from .login import DEFAULT_PLATFORM, PLATFORM, KeptLogin, Login, LoginProblem, platform_url

TOKEN = "OSMOSIS_TOKEN"
TOKEN_PLATFORM = "OSMOSIS_TOKEN_PLATFORM_URL"
CONFIG_DIR = "OSMOSIS_CONFIG_DIR"


def find_login(environ: Mapping[str, str] | None = None) -> Login | None:
    """Return the login for the chosen platform, None when there is none; raise LoginProblem."""
    environ = os.environ if environ is None else environ
    platform = platform_url(environ)
    if environ.get(TOKEN):
        return _from_environment(environ, platform)
    here = kept_logins(environ).at(platform)
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
        platform_url=platform,
        token=kept_token(platform, here.active, login),
        workspace=here.active,
    )


def credentials_path(environ: Mapping[str, str]) -> Path:
    """Return where logins are kept."""
    if folder := environ.get(CONFIG_DIR):
        return Path(folder).expanduser() / "credentials.json"
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "osmosis" / "credentials.json"


def kept_logins(environ: Mapping[str, str]) -> Logins:
    """Return what is kept, also what has expired; raise LoginProblem."""
    return file.read(credentials_path(environ))


def kept_token(platform: str, workspace: str, login: KeptLogin) -> Secret:
    """Return the token of a login that is kept; raise LoginProblem."""
    if login.token is not None:
        return login.token
    try:
        return keyring_tokens.get(platform, workspace)
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
    """Keep a login and make it the active one; raise LoginProblem.

    A credentials file that cannot be understood is set aside first.
    """
    path = credentials_path(environ)
    stored = _in_keyring(platform, workspace, login, path, tell)
    file.change(
        path,
        lambda logins: logins.with_login(platform, workspace, stored),
        tell,
        set_broken_aside=True,
    )


def forget(environ: Mapping[str, str], platform: str, workspace: str, tell: Tell) -> None:
    """Remove a login that is kept; raise LoginProblem."""
    path = credentials_path(environ)
    login = file.read(path).at(platform).workspaces.get(workspace)
    file.change(path, lambda logins: logins.without(platform, workspace), tell)
    if login is None or login.token is not None:
        return
    try:
        keyring_tokens.delete(platform, workspace)
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
    if login.token is None or not keyring_tokens.is_installed():
        return login
    try:
        keyring_tokens.put(platform, workspace, login.token)
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
